/*
 * The bytes of every transfer: a function of their offset in the stream of user data, so that a receiver checks them
 * without knowing where messages begin. Byte i is byte i mod 8 (from the least significant) of step i / 8 of SplitMix64
 * from zero: what Segue calls synthetic data.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t pattern_word(uint64_t index)
{
    uint64_t z = index * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void pattern_fill(uint8_t *bytes, size_t length, uint64_t offset)
{
    for (size_t i = 0; i < length;) {
        uint64_t word = pattern_word((offset + i) / 8) >> ((offset + i) % 8 * 8);
        size_t left = 8 - (offset + i) % 8;
        for (; left > 0 && i < length; left--, i++, word >>= 8)
            bytes[i] = (uint8_t)word;
    }
}

/* The number of bytes that differ. */
static inline size_t pattern_wrong(const uint8_t *bytes, size_t length, uint64_t offset)
{
    size_t wrong = 0;
    for (size_t i = 0; i < length;) {
        uint64_t word = pattern_word((offset + i) / 8) >> ((offset + i) % 8 * 8);
        size_t left = 8 - (offset + i) % 8;
        for (; left > 0 && i < length; left--, i++, word >>= 8)
            wrong += bytes[i] != (uint8_t)word;
    }
    return wrong;
}

#endif
