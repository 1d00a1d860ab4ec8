use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::*;
use crate::enrich::outcome::ErrorBody;
use crate::provider::ErrorType;

/// Remembers every single write.
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<Vec<u8>>>>, Option<io::ErrorKind>);

impl Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(kind) = self.1 {
            return Err(kind.into());
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Writes {
    fn all(&self) -> Vec<String> {
        let writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writes.iter().map(|bytes| String::from_utf8(bytes.clone()).unwrap()).collect()
    }
}

fn record(last: u8) -> Record {
    let error = ErrorBody::new(ErrorType::Cancelled, "the run was stopped");
    Record::refused([192, 0, 2, last].into(), None, error, Timestamp::UNIX_EPOCH)
}

fn skipped() -> Record {
    Record::skipped([10, 0, 0, 1].into(), "private", Timestamp::UNIX_EPOCH)
}

fn sink(writes: &Writes, options: &Options) -> Sink {
    Sink::to_writer(Box::new(writes.clone()), "the test", options).unwrap()
}

#[test]
fn one_record_is_one_write_of_one_line() {
    let writes = Writes::default();
    let mut sink = sink(&writes, &Options::new(Form::Ndjson));
    for last in 0..3 {
        sink.write(&record(last)).unwrap();
        assert_eq!(writes.all().len(), usize::from(last) + 1);
    }
    for line in writes.all() {
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        serde_json::from_str::<Record>(&line).unwrap();
    }
    sink.finish().unwrap();
    assert_eq!(sink.written(), 3);
}

#[test]
fn skipped_records_are_counted_where_they_are_not_shown() {
    for (options, lines) in [
        (Options::new(Form::Ndjson), 2),
        (Options { skipped: false, ..Options::new(Form::Ndjson) }, 1),
        (Options::new(Form::Table), 2),
    ] {
        let writes = Writes::default();
        let mut sink = sink(&writes, &options);
        sink.write(&skipped()).unwrap();
        sink.write(&record(1)).unwrap();
        assert_eq!(sink.skipped(), 1);
        assert_eq!(writes.all().len(), lines, "{options:?}");
    }
}

#[test]
fn sorted_records_wait_for_their_turn_and_no_longer() {
    let writes = Writes::default();
    let options = Options { sort: Sort::Rank, skipped: false, ..Options::new(Form::Ndjson) };
    let mut sink = sink(&writes, &options);
    sink.write_at(&record(2), 2).unwrap();
    assert!(writes.all().is_empty());
    sink.write_at(&record(0), 0).unwrap();
    assert_eq!(writes.all().len(), 1);
    sink.write_at(&skipped(), 1).unwrap();
    assert_eq!(writes.all().len(), 2);
    sink.write_at(&record(9), 9).unwrap();
    assert_eq!(sink.keep_partial(), None);
    let order: Vec<bool> =
        writes.all().iter().zip(["2.0", "2.2", "2.9"]).map(|(l, ip)| l.contains(ip)).collect();
    assert_eq!(order, [true; 3]);
}

#[test]
fn a_closed_pipe_is_told_from_a_full_disk() {
    for (kind, closed, full) in [
        (io::ErrorKind::BrokenPipe, true, false),
        (io::ErrorKind::StorageFull, false, true),
        (io::ErrorKind::QuotaExceeded, false, true),
        (io::ErrorKind::PermissionDenied, false, false),
    ] {
        let writes = Writes(Arc::default(), Some(kind));
        let error = sink(&writes, &Options::new(Form::Ndjson)).write(&record(1)).unwrap_err();
        assert_eq!((error.is_closed_pipe(), error.is_full()), (closed, full), "{error}");
    }
}

#[test]
fn a_full_device_is_said_so() {
    let target = Target::File { path: "/dev/full".into(), append: false };
    let mut sink = Sink::open(&target, &Options::new(Form::Ndjson)).unwrap();
    assert!(sink.write(&record(1)).unwrap_err().is_full());
    assert_eq!(sink.partial(), None);
}

#[test]
fn a_file_appears_whole_or_stays_beside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.ndjson");
    let target = Target::File { path: path.clone(), append: false };
    let mut sink = Sink::open(&target, &Options::new(Form::Ndjson)).unwrap();
    sink.write(&record(1)).unwrap();
    let partial = sink.keep_partial().unwrap();
    assert!(!path.exists());
    assert_eq!(std::fs::read_to_string(partial).unwrap().lines().count(), 1);
    let mut sink = Sink::open(&target, &Options::new(Form::Ndjson)).unwrap();
    sink.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
}

#[test]
fn a_table_that_is_added_to_has_one_heading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.txt");
    for last in 1..3 {
        let target = Target::File { path: path.clone(), append: true };
        let mut sink = Sink::open(&target, &Options::new(Form::Table)).unwrap();
        sink.write(&record(last)).unwrap();
        sink.finish().unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert_eq!(text.matches("VERDICT").count(), 1);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let target = Target::File { path: "/nonexistent/out".into(), append: false };
    let error = Sink::open(&target, &Options::new(Form::Ndjson)).unwrap_err();
    assert_eq!(error.to_string(), "cannot open /nonexistent/out for writing");
}

#[test]
fn an_array_is_one_whatever_comes() {
    for records in 0..4 {
        for sort in [Sort::Done, Sort::Input] {
            let writes = Writes::default();
            let options = Options { sort, ..Options::new(Form::Json) };
            let mut sink = sink(&writes, &options);
            for last in (0..records).rev() {
                sink.write_at(&record(last), u64::from(last)).unwrap();
            }
            sink.finish().unwrap();
            let all: Vec<Record> = serde_json::from_str(&writes.all().concat()).unwrap();
            assert_eq!(all.len(), usize::from(records));
        }
    }
}

#[test]
fn an_unfinished_array_can_be_read_and_an_empty_one_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::File { path: folder.path().join("out.json"), append: true };
    let mut sink = Sink::open(&target, &Options::new(Form::Json)).unwrap();
    sink.write(&record(1)).unwrap();
    let partial = std::fs::read(sink.keep_partial().unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Vec<Record>>(&partial).unwrap().len(), 1);
    let mut sink = Sink::open(&target, &Options::new(Form::Json)).unwrap();
    assert_eq!(sink.keep_partial(), None);
}
