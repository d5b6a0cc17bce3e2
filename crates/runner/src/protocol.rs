//! The messages between daemon and runner, and their bytes. Pure.
//!
//! A frame is `[u32 length, little-endian][u8 kind][payload]`; the length counts the payload only. Control messages
//! carry JSON; what is frequent or large (output, input, offsets) carries a fixed binary head and raw bytes. A record
//! has the same bytes on the socket as in the journal, so serving one is copying it.
//!
//! Invariant: bytes from a peer or a torn file never panic here and never make anybody allocate more than
//! [`Kind::max_payload`]; they decode, or they are a [`ProtocolError`].

use serde::{Deserialize, Serialize};

use crate::framing::MAX_PIECE;
use crate::spec::{Spec, StopLimits};

/// The version of this protocol; both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

/// The bytes before a payload.
pub const HEAD: usize = 5;

/// The most bytes one numbered input holds: a prompt may carry images.
pub const MAX_INPUT: usize = 64 << 20;

const MAX_CONTROL: usize = 8 << 20;
const OUTPUT_HEAD: usize = 9;
const INPUT_RECORD_HEAD: usize = 16;
const NUMBER: usize = 8;

/// The bytes before an input record's own bytes, frame head included.
pub const INPUT_RECORD_PREFIX: usize = HEAD + INPUT_RECORD_HEAD;

/// What a daemon says to a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToRunner {
    Hello(Hello),
    Start(Box<Spec>),
    /// Bytes for the child's stdin. Numbers start at 1 and grow by one; a repeated number is acknowledged again and
    /// not written again.
    Input {
        number: u64,
        bytes: Vec<u8>,
    },
    /// All records before this offset are done with.
    Confirm {
        offset: u64,
    },
    Stop(Stop),
    StderrTail,
}

/// What a runner says to a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRunner {
    Welcome(Welcome),
    Started {
        child_pid: i32,
    },
    StartFailed {
        message: String,
    },
    Record(Record),
    /// The input is in the journal: it will reach the child as long as the child lives.
    InputAck {
        number: u64,
    },
    StderrTail {
        text: String,
    },
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    /// The first record wanted.
    pub from: u64,
}

/// Where the runner stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub version: u32,
    /// The runner's own process.
    pub runner_pid: i32,
    pub started: bool,
    pub child_pid: Option<i32>,
    /// The oldest record still held.
    pub first_offset: u64,
    /// The offset the next record will have.
    pub next_offset: u64,
    /// The number of the last accepted input; 0 if none was.
    pub last_input: u64,
    /// How the child ended, once its exit record is in the journal.
    pub exit: Option<Exit>,
}

/// Ends the child and everything it started, step by step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// What the agent's own protocol says to make it end; written to stdin first.
    pub protocol_stop: Option<Vec<u8>>,
    /// Time limits other than the spec's. A later stop with shorter limits hurries an earlier one.
    pub limits: Option<StopLimits>,
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Starts at 0 and grows by one per record.
    pub offset: u64,
    pub body: RecordBody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordBody {
    /// What the child wrote. A line may be several of these; only its last has `end_of_line`.
    Output { bytes: Vec<u8>, end_of_line: bool },
    /// What was accepted for the child's stdin.
    Input { number: u64, bytes: Vec<u8> },
    /// The child and all its descendants are gone; the last record there is.
    Exit(Exit),
}

/// How the child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The kernel did not end it within the limits of the stop.
    Unknown,
}

/// Why a runner did not do what a message asked; the connection stays open unless the reason says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: RefusalReason,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// The peer speaks another version; the connection is closed.
    Version,
    /// The peer asked for records that do not exist yet; the connection is closed.
    Offset,
    /// Input before the child was started.
    NotStarted,
    /// An input number was skipped: send the missing one first.
    InputGap,
    /// The child reads too slowly or the disk is full: send this input again later.
    InputFull,
    /// The child has ended or is being stopped: this input can no longer reach it.
    Ended,
}

/// Bytes that are no message.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProtocolError {
    #[error("the peer sent a frame of the unknown kind {0}")]
    UnknownKind(u8),
    #[error("the peer sent a frame of {length} bytes where at most {limit} are allowed")]
    TooLong { length: usize, limit: usize },
    #[error("the peer sent a frame of the kind {0:?} that does not decode")]
    Malformed(Kind),
}

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Hello = 1,
    Start = 2,
    Input = 3,
    Confirm = 4,
    Stop = 5,
    StderrTailRequest = 6,
    Welcome = 64,
    Started = 65,
    StartFailed = 66,
    Output = 67,
    InputRecord = 68,
    Exit = 69,
    InputAck = 70,
    StderrTail = 71,
    Refused = 72,
}

impl Kind {
    const ALL: [Self; 15] = [
        Self::Hello,
        Self::Start,
        Self::Input,
        Self::Confirm,
        Self::Stop,
        Self::StderrTailRequest,
        Self::Welcome,
        Self::Started,
        Self::StartFailed,
        Self::Output,
        Self::InputRecord,
        Self::Exit,
        Self::InputAck,
        Self::StderrTail,
        Self::Refused,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// The longest payload a frame of this kind may have.
    pub fn max_payload(self) -> usize {
        match self {
            Self::Hello => 4096,
            Self::Start | Self::Stop => MAX_CONTROL,
            Self::Input => NUMBER + MAX_INPUT,
            Self::Confirm | Self::InputAck => NUMBER,
            Self::StderrTailRequest => 0,
            Self::Output => OUTPUT_HEAD + MAX_PIECE,
            Self::InputRecord => INPUT_RECORD_HEAD + MAX_INPUT,
            Self::Welcome
            | Self::Started
            | Self::StartFailed
            | Self::Exit
            | Self::StderrTail
            | Self::Refused => 256 * 1024,
        }
    }
}

/// A frame's kind and the length of the payload that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    pub kind: Kind,
    pub payload: usize,
}

impl FrameHead {
    /// Head and payload together.
    pub fn total(self) -> usize {
        HEAD + self.payload
    }
}

/// Reads a frame's head, or `None` if it is not all there.
pub fn frame_head(bytes: &[u8]) -> Result<Option<FrameHead>, ProtocolError> {
    let Some((head, _)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
    let [a, b, c, d, kind] = *head;
    let kind = Kind::from_byte(kind).ok_or(ProtocolError::UnknownKind(kind))?;
    let payload = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    let limit = kind.max_payload();
    if payload > limit {
        return Err(ProtocolError::TooLong { length: payload, limit });
    }
    Ok(Some(FrameHead { kind, payload }))
}

/// The first complete frame (head and payload), or `None` if it is not all there.
pub fn first_frame(bytes: &[u8]) -> Result<Option<(FrameHead, &[u8])>, ProtocolError> {
    let Some(head) = frame_head(bytes)? else { return Ok(None) };
    Ok(bytes.get(HEAD..head.total()).map(|payload| (head, payload)))
}

impl ToRunner {
    /// Appends the message's frame; fails only for a control message that is too large or not UTF-8.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match self {
            Self::Hello(hello) => put_json(out, Kind::Hello, hello),
            Self::Start(spec) => put_json(out, Kind::Start, spec),
            Self::Input { number, bytes } => put_input(out, *number, bytes),
            Self::Confirm { offset } => {
                put_frame(out, Kind::Confirm, &[&offset.to_le_bytes()]);
                Ok(())
            }
            Self::Stop(stop) => put_json(out, Kind::Stop, stop),
            Self::StderrTail => {
                put_frame(out, Kind::StderrTailRequest, &[]);
                Ok(())
            }
        }
    }

    /// Reads a payload that came under `kind`.
    pub fn decode(kind: Kind, payload: &[u8]) -> Result<Self, ProtocolError> {
        let malformed = ProtocolError::Malformed(kind);
        match kind {
            Kind::Hello => from_json(kind, payload).map(Self::Hello),
            Kind::Start => from_json(kind, payload).map(Self::Start),
            Kind::Input => {
                let (number, bytes) = take_u64(payload).ok_or(malformed)?;
                Ok(Self::Input { number, bytes: bytes.to_vec() })
            }
            Kind::Confirm => match take_u64(payload) {
                Some((offset, [])) => Ok(Self::Confirm { offset }),
                _ => Err(malformed),
            },
            Kind::Stop => from_json(kind, payload).map(Self::Stop),
            Kind::StderrTailRequest => Ok(Self::StderrTail),
            _ => Err(malformed),
        }
    }
}

impl FromRunner {
    /// Appends the message's frame.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match self {
            Self::Welcome(welcome) => put_json(out, Kind::Welcome, welcome)?,
            Self::Started { child_pid } => put_json(out, Kind::Started, child_pid)?,
            Self::StartFailed { message } => put_frame(out, Kind::StartFailed, &[message.as_bytes()]),
            Self::Record(record) => record.encode(out)?,
            Self::InputAck { number } => put_frame(out, Kind::InputAck, &[&number.to_le_bytes()]),
            Self::StderrTail { text } => put_frame(out, Kind::StderrTail, &[text.as_bytes()]),
            Self::Refused(refusal) => put_json(out, Kind::Refused, refusal)?,
        }
        Ok(())
    }

    /// Reads a payload that came under `kind`.
    pub fn decode(kind: Kind, payload: &[u8]) -> Result<Self, ProtocolError> {
        let text = || String::from_utf8_lossy(payload).into_owned();
        match kind {
            Kind::Welcome => from_json(kind, payload).map(Self::Welcome),
            Kind::Started => from_json(kind, payload).map(|child_pid| Self::Started { child_pid }),
            Kind::StartFailed => Ok(Self::StartFailed { message: text() }),
            Kind::Output | Kind::InputRecord | Kind::Exit => Record::decode(kind, payload).map(Self::Record),
            Kind::InputAck => match take_u64(payload) {
                Some((number, [])) => Ok(Self::InputAck { number }),
                _ => Err(ProtocolError::Malformed(kind)),
            },
            Kind::StderrTail => Ok(Self::StderrTail { text: text() }),
            Kind::Refused => from_json(kind, payload).map(Self::Refused),
            _ => Err(ProtocolError::Malformed(kind)),
        }
    }
}

impl Record {
    /// Appends the record's frame, as it stands in the journal and on the wire.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        match &self.body {
            RecordBody::Output { bytes, end_of_line } => put_output(out, self.offset, *end_of_line, bytes),
            RecordBody::Input { number, bytes } => {
                out.extend(input_record_prefix(self.offset, *number, bytes.len())?);
                out.extend_from_slice(bytes);
            }
            RecordBody::Exit(exit) => put_exit(out, self.offset, *exit)?,
        }
        Ok(())
    }

    /// Reads a payload that came under `kind`.
    pub fn decode(kind: Kind, payload: &[u8]) -> Result<Self, ProtocolError> {
        let malformed = ProtocolError::Malformed(kind);
        let Some((offset, rest)) = take_u64(payload) else { return Err(malformed) };
        let body = match kind {
            Kind::Output => match rest.split_first() {
                Some((flag @ 0..=1, bytes)) => {
                    RecordBody::Output { bytes: bytes.to_vec(), end_of_line: *flag == 1 }
                }
                _ => return Err(malformed),
            },
            Kind::InputRecord => {
                let (number, bytes) = take_u64(rest).ok_or(malformed)?;
                RecordBody::Input { number, bytes: bytes.to_vec() }
            }
            Kind::Exit => RecordBody::Exit(from_json(kind, rest)?),
            _ => return Err(malformed),
        };
        Ok(Self { offset, body })
    }
}

/// Appends an output record. `bytes` must not be longer than [`MAX_PIECE`].
pub fn put_output(out: &mut Vec<u8>, offset: u64, end_of_line: bool, bytes: &[u8]) {
    debug_assert!(bytes.len() <= MAX_PIECE);
    put_frame(out, Kind::Output, &[&offset.to_le_bytes(), &[u8::from(end_of_line)], bytes]);
}

/// Appends an exit record.
pub fn put_exit(out: &mut Vec<u8>, offset: u64, exit: Exit) -> Result<(), ProtocolError> {
    let json = serde_json::to_vec(&exit).map_err(|_| ProtocolError::Malformed(Kind::Exit))?;
    put_frame(out, Kind::Exit, &[&offset.to_le_bytes(), &json]);
    Ok(())
}

/// Appends an input message.
pub fn put_input(out: &mut Vec<u8>, number: u64, bytes: &[u8]) -> Result<(), ProtocolError> {
    if bytes.len() > MAX_INPUT {
        return Err(ProtocolError::TooLong { length: bytes.len(), limit: MAX_INPUT });
    }
    put_frame(out, Kind::Input, &[&number.to_le_bytes(), bytes]);
    Ok(())
}

/// What stands before an input record's bytes.
pub fn input_record_prefix(
    offset: u64,
    number: u64,
    length: usize,
) -> Result<[u8; INPUT_RECORD_PREFIX], ProtocolError> {
    let payload = INPUT_RECORD_HEAD + length;
    let limit = Kind::InputRecord.max_payload();
    let length = match u32::try_from(payload) {
        Ok(length) if payload <= limit => length,
        _ => return Err(ProtocolError::TooLong { length: payload, limit }),
    };
    let mut prefix = [0; INPUT_RECORD_PREFIX];
    prefix[..4].copy_from_slice(&length.to_le_bytes());
    prefix[4] = Kind::InputRecord as u8;
    prefix[5..13].copy_from_slice(&offset.to_le_bytes());
    prefix[13..].copy_from_slice(&number.to_le_bytes());
    Ok(prefix)
}

/// Splits a little-endian number off the front.
pub fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk::<8>().map(|(number, rest)| (u64::from_le_bytes(*number), rest))
}

/// Every caller keeps its parts far below 4 GiB, so the length fits.
fn put_frame(out: &mut Vec<u8>, kind: Kind, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    out.push(kind as u8);
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn put_json(out: &mut Vec<u8>, kind: Kind, value: &impl Serialize) -> Result<(), ProtocolError> {
    let json = serde_json::to_vec(value).map_err(|_| ProtocolError::Malformed(kind))?;
    let limit = kind.max_payload();
    if json.len() > limit {
        return Err(ProtocolError::TooLong { length: json.len(), limit });
    }
    put_frame(out, kind, &[&json]);
    Ok(())
}

/// The JSON error is dropped on purpose: it could quote a secret of the spec.
fn from_json<T: for<'a> Deserialize<'a>>(kind: Kind, payload: &[u8]) -> Result<T, ProtocolError> {
    serde_json::from_slice(payload).map_err(|_| ProtocolError::Malformed(kind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to_runner_messages() -> Vec<ToRunner> {
        vec![
            ToRunner::Hello(Hello { version: 1, from: 7 }),
            ToRunner::Start(Box::new(Spec::new("agent", "/tmp"))),
            ToRunner::Input { number: 3, bytes: b"{}\n".to_vec() },
            ToRunner::Input { number: u64::MAX, bytes: vec![] },
            ToRunner::Confirm { offset: 12 },
            ToRunner::Stop(Stop::default()),
            ToRunner::Stop(Stop { protocol_stop: Some(vec![0, 255]), limits: Some(StopLimits::at_once()) }),
            ToRunner::StderrTail,
        ]
    }

    fn from_runner_messages() -> Vec<FromRunner> {
        let record = |body| FromRunner::Record(Record { offset: 9, body });
        let refusal = Refusal { reason: RefusalReason::InputGap, message: "no".into() };
        vec![
            FromRunner::Welcome(Welcome {
                version: 1,
                runner_pid: 3,
                started: true,
                child_pid: Some(4),
                first_offset: 1,
                next_offset: 2,
                last_input: 3,
                exit: Some(Exit::Signal(9)),
            }),
            FromRunner::Started { child_pid: 77 },
            FromRunner::StartFailed { message: "no such program".into() },
            record(RecordBody::Output { bytes: b"line".to_vec(), end_of_line: true }),
            record(RecordBody::Output { bytes: vec![], end_of_line: false }),
            record(RecordBody::Input { number: 1, bytes: vec![1, 2, 3] }),
            record(RecordBody::Exit(Exit::Code(3))),
            FromRunner::InputAck { number: 8 },
            FromRunner::StderrTail { text: "oh".into() },
            FromRunner::Refused(refusal),
        ]
    }

    #[test]
    fn every_message_survives_the_wire() {
        for message in to_runner_messages() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).unwrap();
            let (head, payload) = first_frame(&bytes).unwrap().unwrap();
            assert_eq!(head.total(), bytes.len());
            assert_eq!(ToRunner::decode(head.kind, payload).unwrap(), message);
        }
        for message in from_runner_messages() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).unwrap();
            let (head, payload) = first_frame(&bytes).unwrap().unwrap();
            assert_eq!(head.total(), bytes.len());
            assert_eq!(FromRunner::decode(head.kind, payload).unwrap(), message);
        }
    }

    #[test]
    fn a_truncated_frame_is_incomplete_and_never_wrong() {
        for message in from_runner_messages() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).unwrap();
            for length in 0..bytes.len() {
                assert_eq!(first_frame(&bytes[..length]), Ok(None));
            }
        }
    }

    #[test]
    fn oversized_and_unknown_frames_are_refused_by_their_head() {
        assert_eq!(frame_head(&[0, 0, 0, 0, 200]), Err(ProtocolError::UnknownKind(200)));
        assert!(matches!(
            frame_head(&[255, 255, 255, 255, Kind::Hello as u8]),
            Err(ProtocolError::TooLong { limit: 4096, .. })
        ));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..80) {
            if let Ok(Some((head, payload))) = first_frame(&bytes) {
                drop(ToRunner::decode(head.kind, payload));
                drop(FromRunner::decode(head.kind, payload));
            }
            if let Some(kind) = Kind::from_byte(kind) {
                drop(ToRunner::decode(kind, &bytes));
                drop(FromRunner::decode(kind, &bytes));
            }
        }
    }
}
