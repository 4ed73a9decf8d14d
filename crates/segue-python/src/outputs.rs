//! Where the captures and tables of a run go: into files while it runs, tables also into memory.

use crate::part_file::PartFile;
use crate::tables::{Pieces, Tables};
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use segue_sim::{Sink, SinkError, Trace};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Rows that a Parquet file holds back until it writes them: its row group.
const ROW_GROUP_ROWS: usize = 1 << 18;

/// Columns of whole numbers that differ little from row to row, and that few rows share.
const RISING: [&str; 3] = ["time_ns", "packet_id", "tsn"];

/// Columns of numbers with a fraction.
const MEASURED: [&str; 2] = ["x_m", "y_m"];

/// What is to be recorded, and where.
#[derive(Clone, Default)]
pub(crate) struct Wanted {
    /// Tables in memory.
    pub trace: bool,
    /// The folder for tables as Parquet files; then not in memory.
    pub trace_folder: Option<PathBuf>,
    /// The folder for captures.
    pub pcap_folder: Option<PathBuf>,
}

impl Wanted {
    /// Whether tables are recorded, wherever.
    pub const fn traces(&self) -> bool {
        self.trace || self.trace_folder.is_some()
    }
}

/// The sink of a run. Its files have their names once [`Outputs::finish`] has given them those.
pub(crate) struct Outputs {
    pcap_folder: Option<PathBuf>,
    captures: Vec<(String, PartFile)>,
    trace: Rows,
}

/// What there is of a run when it is over.
pub(crate) struct Recorded {
    pub tables_in_memory: Option<Tables>,
    /// Whether they are in their folder instead.
    pub tables_in_files: bool,
    /// Names of the captures in their folder.
    pub captures: Vec<String>,
}

enum Rows {
    None,
    Memory(Pieces),
    Files { folder: PathBuf, tables: Vec<Table> },
}

struct Table {
    path: PathBuf,
    writer: ArrowWriter<PartFile>,
}

impl Outputs {
    pub fn new(wanted: &Wanted) -> Self {
        let trace = match &wanted.trace_folder {
            Some(folder) => Rows::Files {
                folder: folder.clone(),
                tables: Vec::new(),
            },
            None if wanted.trace => Rows::Memory(Pieces::default()),
            None => Rows::None,
        };
        Self {
            pcap_folder: wanted.pcap_folder.clone(),
            captures: Vec::new(),
            trace,
        }
    }

    /// The run is over: files get their names.
    pub fn finish(self) -> Result<Recorded, SinkError> {
        let (mut tables_in_files, mut tables_in_memory) = (false, None);
        // all are whole before the first gets its name: a disk may fill with the last bytes of any of them
        let mut files = Vec::new();
        match self.trace {
            Rows::None => {}
            Rows::Memory(pieces) => tables_in_memory = Some(Tables::new(pieces)),
            Rows::Files { tables, .. } => {
                for table in tables {
                    files.push(table.end()?);
                }
                tables_in_files = true;
            }
        }
        let mut captures = Vec::with_capacity(self.captures.len());
        for (name, file) in self.captures {
            files.push(file);
            captures.push(name);
        }
        for file in &mut files {
            file.flush().map_err(|e| SinkError(e.to_string()))?;
        }
        for file in files {
            file.finish().map_err(|e| SinkError(e.to_string()))?;
        }
        Ok(Recorded {
            tables_in_memory,
            tables_in_files,
            captures,
        })
    }
}

impl Sink for Outputs {
    fn capture(&mut self, file: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let Some(folder) = &self.pcap_folder else {
            return Ok(());
        };
        let known = self.captures.iter().position(|(name, _)| name == file);
        let at = match known {
            Some(at) => at,
            None => {
                let part = PartFile::create(&folder.join(file)).map_err(|e| SinkError(e.to_string()))?;
                self.captures.push((file.to_owned(), part));
                self.captures.len() - 1
            }
        };
        let written = self.captures[at].1.write_all(bytes);
        written.map_err(|e| SinkError(e.to_string()))
    }

    fn rows(&mut self, rows: Trace) -> Result<(), SinkError> {
        match &mut self.trace {
            Rows::None => Ok(()),
            Rows::Memory(pieces) => {
                pieces.add(rows);
                Ok(())
            }
            Rows::Files { folder, tables } => {
                let batches = Pieces::batches(rows);
                if tables.is_empty() {
                    for (name, batch) in Tables::NAMES.iter().zip(&batches) {
                        tables.push(Table::create(&folder.join(format!("{name}.parquet")), batch)?);
                    }
                }
                for (table, batch) in tables.iter_mut().zip(&batches) {
                    table.write(batch)?;
                }
                Ok(())
            }
        }
    }
}

impl Table {
    fn create(path: &Path, like: &RecordBatch) -> Result<Self, SinkError> {
        let part = PartFile::create(path).map_err(|e| SinkError(e.to_string()))?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
        // what hardly comes twice is not looked up among what came before
        for column in RISING {
            properties = properties
                .set_column_dictionary_enabled(column.into(), false)
                .set_column_encoding(column.into(), Encoding::DELTA_BINARY_PACKED);
        }
        for column in MEASURED {
            properties = properties.set_column_dictionary_enabled(column.into(), false);
        }
        let properties = properties.build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(part, like.schema(), options);
        Ok(Self {
            writer: writer.map_err(|e| refused(path, e))?,
            path: path.to_owned(),
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), SinkError> {
        self.writer.write(batch).map_err(|e| refused(&self.path, e))
    }

    /// Writes what is left and the footer.
    fn end(self) -> Result<PartFile, SinkError> {
        let path = self.path;
        self.writer.into_inner().map_err(|e| refused(&path, e))
    }
}

/// What a file says of itself names it already.
fn refused(path: &Path, error: ParquetError) -> SinkError {
    match error {
        ParquetError::External(of_file) => SinkError(of_file.to_string()),
        other => SinkError(format!("{}: {other}", path.display())),
    }
}
