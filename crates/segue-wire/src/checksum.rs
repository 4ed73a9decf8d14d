//! The Internet checksum (RFC 1071) and CRC32c (RFC 9260 appendix A).
