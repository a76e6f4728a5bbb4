//! OTLP's messages as protobuf, by the field numbers of opentelemetry-proto 1.x. The set is small and stable, so it is written
//! here instead of being generated.

use crate::otlp::{Attributes, Data, Metric, MetricValue, Point, Span, SpanEvent, Status, Value};

/// The wire types.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// A message that is being written.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, BYTES);
        self.plain_varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub(crate) fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    pub(crate) fn attributes(&mut self, field: u64, attributes: &Attributes) {
        for attribute in &attributes.0 {
            self.message(field, |pair| {
                pair.text(1, attribute.key);
                pair.message(2, |inner| inner.value(&attribute.value));
            });
        }
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.plain_varint(field << 3 | wire_type);
    }

    fn plain_varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn varint(&mut self, field: u64, number: u64) {
        self.key(field, VARINT);
        self.plain_varint(number);
    }

    fn fixed(&mut self, field: u64, number: u64) {
        self.key(field, FIXED64);
        self.0.extend(number.to_le_bytes());
    }

    fn double(&mut self, field: u64, number: f64) {
        self.fixed(field, number.to_bits());
    }

    fn packed(&mut self, field: u64, numbers: impl Iterator<Item = u64>) {
        self.bytes(field, &numbers.flat_map(u64::to_le_bytes).collect::<Vec<_>>());
    }

    /// An id that we have in hexadecimal.
    fn id(&mut self, field: u64, hex: &str) {
        let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
        self.bytes(field, &pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap_or_default()).collect::<Vec<_>>());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Text(text) => self.text(1, text),
            Value::Bool(is) => self.varint(2, u64::from(*is)),
            Value::Int(number) => self.varint(3, *number),
            Value::Double(number) => self.double(4, *number),
            Value::List { values } => self.message(5, |list| {
                for value in values {
                    list.message(1, |inner| inner.value(value));
                }
            }),
        }
    }

    fn point(&mut self, point: &Point) {
        self.fixed(2, point.start_time_unix_nano);
        self.fixed(3, point.time_unix_nano);
        match &point.value {
            MetricValue::Int { as_int } => {
                self.fixed(6, *as_int);
                self.attributes(7, &point.attributes);
            }
            MetricValue::Double { as_double } => {
                self.double(4, *as_double);
                self.attributes(7, &point.attributes);
            }
            MetricValue::Histogram { count, sum, bucket_counts, explicit_bounds } => {
                self.fixed(4, *count);
                self.double(5, *sum);
                self.packed(6, bucket_counts.iter().copied());
                self.packed(7, explicit_bounds.iter().map(|bound| bound.to_bits()));
                self.attributes(9, &point.attributes);
            }
        }
    }

    fn points(&mut self, points: &[Point]) {
        for point in points {
            self.message(1, |inner| inner.point(point));
        }
    }
}

pub(crate) fn span(span: &Span) -> Vec<u8> {
    let Span { trace_id, span_id, parent_span_id, name, kind, attributes, events, status, .. } = span;
    let mut message = Message::default();
    message.id(1, trace_id);
    message.id(2, span_id);
    if let Some(parent) = parent_span_id {
        message.id(4, parent);
    }
    message.text(5, name);
    message.varint(6, u64::from(*kind));
    message.fixed(7, span.start_time_unix_nano);
    message.fixed(8, span.end_time_unix_nano);
    message.attributes(9, attributes);
    for SpanEvent { time_unix_nano, name, attributes } in events {
        message.message(11, |event| {
            event.fixed(1, *time_unix_nano);
            event.text(2, name);
            event.attributes(3, attributes);
        });
    }
    let Status { code, message: text } = status;
    message.message(15, |status| {
        if !text.is_empty() {
            status.text(2, text);
        }
        if let Some(code) = code {
            status.varint(3, u64::from(*code));
        }
    });
    message.into_bytes()
}

pub(crate) fn metric(metric: &Metric) -> Vec<u8> {
    let Metric { name, unit, description, data } = metric;
    let mut message = Message::default();
    message.text(1, name);
    message.text(2, description);
    message.text(3, unit);
    match data {
        Data::Gauge { data_points } => message.message(5, |gauge| gauge.points(data_points)),
        Data::Sum { aggregation_temporality, is_monotonic, data_points } => message.message(7, |sum| {
            sum.points(data_points);
            sum.varint(2, u64::from(*aggregation_temporality));
            sum.varint(3, u64::from(*is_monotonic));
        }),
        Data::Histogram { aggregation_temporality, data_points } => message.message(9, |histogram| {
            histogram.points(data_points);
            histogram.varint(2, u64::from(*aggregation_temporality));
        }),
    }
    message.into_bytes()
}

/// How many spans a collector rejected, by its answer: `partial_success` has `rejected_spans`. None if it is not such an answer.
pub(crate) fn rejected_spans(answer: &[u8]) -> Option<u64> {
    let partial_success = fields(answer)?.into_iter().find_map(|(field, value)| match value {
        Field::Bytes(bytes) if field == 1 => Some(bytes),
        _ => None,
    });
    fields(partial_success?)?.into_iter().find_map(|(field, value)| match value {
        Field::Varint(number) if field == 1 => Some(number),
        _ => None,
    })
}

enum Field<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A number of fixed length, which no answer has that we read.
    Fixed,
}

/// The fields of a message; none if it is not well-formed.
fn fields(mut rest: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let field = match key & 7 {
            VARINT => Field::Varint(varint(&mut rest)?),
            BYTES => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Field::Bytes(rest.split_off(..length)?)
            }
            FIXED64 => rest.split_off(..8).map(|_| Field::Fixed)?,
            FIXED32 => rest.split_off(..4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        fields.push((key >> 3, field));
    }
    Some(fields)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod decode;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_says_how_many_spans_it_rejected() {
        let check = |answer: &[u8], rejected| assert_eq!(rejected_spans(answer), rejected, "{answer:?}");
        check(&[], None);
        check(&[0x0a, 0x00], None);
        check(&[0x0a, 0x02, 0x08, 0x03], Some(3));
        check(&[0x0a, 0x05, 0x08, 0xac, 0x02, 0x12, 0x00], Some(300));
        // Other fields are skipped, and whatever is no answer is none.
        check(&[0x15, 0, 0, 0, 0, 0x19, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0x02, 0x08, 0x01], Some(1));
        check(b"{}", None);
        check(&[0x0a, 0xff], None);
        check(&[0x0a, 0x01, 0xff], None);
        check(&[0xff; 11], None);
    }
}
