//! Reads OTLP's protobuf into OTLP's JSON, by a table that was copied from the `.proto` files and shares nothing with the encoder.

use serde_json::{Map, Value, json};

/// The JSON form of a request for `/v1/traces` or `/v1/metrics`.
pub(crate) fn request(path: &str, body: &[u8]) -> Value {
    match path {
        "/v1/traces" => message("TracesData", body),
        "/v1/metrics" => message("MetricsData", body),
        other => panic!("{other} is not known"),
    }
}

/// Message, field number, name, type; `*` means repeated.
const FIELDS: &[(&str, u64, &str, &str)] = &[
    ("TracesData", 1, "resourceSpans", "*ResourceSpans"),
    ("ResourceSpans", 1, "resource", "Resource"),
    ("ResourceSpans", 2, "scopeSpans", "*ScopeSpans"),
    ("ScopeSpans", 1, "scope", "InstrumentationScope"),
    ("ScopeSpans", 2, "spans", "*Span"),
    ("Resource", 1, "attributes", "*KeyValue"),
    ("InstrumentationScope", 1, "name", "string"),
    ("InstrumentationScope", 2, "version", "string"),
    ("KeyValue", 1, "key", "string"),
    ("KeyValue", 2, "value", "AnyValue"),
    ("AnyValue", 1, "stringValue", "string"),
    ("AnyValue", 2, "boolValue", "bool"),
    ("AnyValue", 3, "intValue", "int64"),
    ("AnyValue", 4, "doubleValue", "double"),
    ("AnyValue", 5, "arrayValue", "ArrayValue"),
    ("ArrayValue", 1, "values", "*AnyValue"),
    ("Span", 1, "traceId", "id"),
    ("Span", 2, "spanId", "id"),
    ("Span", 4, "parentSpanId", "id"),
    ("Span", 5, "name", "string"),
    ("Span", 6, "kind", "enum"),
    ("Span", 7, "startTimeUnixNano", "fixed64"),
    ("Span", 8, "endTimeUnixNano", "fixed64"),
    ("Span", 9, "attributes", "*KeyValue"),
    ("Span", 11, "events", "*Event"),
    ("Span", 15, "status", "Status"),
    ("Event", 1, "timeUnixNano", "fixed64"),
    ("Event", 2, "name", "string"),
    ("Event", 3, "attributes", "*KeyValue"),
    ("Status", 2, "message", "string"),
    ("Status", 3, "code", "enum"),
    ("MetricsData", 1, "resourceMetrics", "*ResourceMetrics"),
    ("ResourceMetrics", 1, "resource", "Resource"),
    ("ResourceMetrics", 2, "scopeMetrics", "*ScopeMetrics"),
    ("ScopeMetrics", 1, "scope", "InstrumentationScope"),
    ("ScopeMetrics", 2, "metrics", "*Metric"),
    ("Metric", 1, "name", "string"),
    ("Metric", 2, "description", "string"),
    ("Metric", 3, "unit", "string"),
    ("Metric", 5, "gauge", "Gauge"),
    ("Metric", 7, "sum", "Sum"),
    ("Metric", 9, "histogram", "Histogram"),
    ("Gauge", 1, "dataPoints", "*NumberDataPoint"),
    ("Sum", 1, "dataPoints", "*NumberDataPoint"),
    ("Sum", 2, "aggregationTemporality", "enum"),
    ("Sum", 3, "isMonotonic", "bool"),
    ("Histogram", 1, "dataPoints", "*HistogramDataPoint"),
    ("Histogram", 2, "aggregationTemporality", "enum"),
    ("NumberDataPoint", 2, "startTimeUnixNano", "fixed64"),
    ("NumberDataPoint", 3, "timeUnixNano", "fixed64"),
    ("NumberDataPoint", 4, "asDouble", "double"),
    ("NumberDataPoint", 6, "asInt", "fixed64"),
    ("NumberDataPoint", 7, "attributes", "*KeyValue"),
    ("HistogramDataPoint", 2, "startTimeUnixNano", "fixed64"),
    ("HistogramDataPoint", 3, "timeUnixNano", "fixed64"),
    ("HistogramDataPoint", 4, "count", "fixed64"),
    ("HistogramDataPoint", 5, "sum", "double"),
    ("HistogramDataPoint", 6, "bucketCounts", "packed fixed64"),
    ("HistogramDataPoint", 7, "explicitBounds", "packed double"),
    ("HistogramDataPoint", 9, "attributes", "*KeyValue"),
];

fn message(of: &str, mut rest: &[u8]) -> Value {
    let mut object = Map::new();
    while !rest.is_empty() {
        let key = varint(&mut rest);
        let row = FIELDS.iter().find(|row| row.0 == of && row.1 == key >> 3);
        let (_, _, name, kind) = row.unwrap_or_else(|| panic!("{of} has no field {}", key >> 3));
        let (single, is_repeated) = kind.strip_prefix('*').map_or((*kind, false), |single| (single, true));
        let value = field(single, key & 7, &mut rest);
        if is_repeated {
            object.entry(*name).or_insert_with(|| json!([])).as_array_mut().unwrap().push(value);
        } else {
            assert_eq!(object.insert((*name).to_owned(), value), None, "{of}.{name} comes twice");
        }
    }
    Value::Object(object)
}

fn field(kind: &str, wire_type: u64, rest: &mut &[u8]) -> Value {
    let wanted = match kind {
        "bool" | "int64" | "enum" => 0,
        "fixed64" | "double" => 1,
        _ => 2,
    };
    assert_eq!(wire_type, wanted, "{kind}");
    let bytes = match wire_type {
        0 => {
            let number = varint(rest);
            return match kind {
                "bool" => json!(number == 1),
                "int64" => json!(number.to_string()),
                _ => json!(number),
            };
        }
        1 => taken(rest, 8),
        _ => {
            let length = varint(rest) as usize;
            taken(rest, length)
        }
    };
    let numbers = || bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()));
    match kind {
        "string" => json!(std::str::from_utf8(bytes).unwrap()),
        "id" => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        "fixed64" => json!(numbers().next().unwrap().to_string()),
        "double" => json!(f64::from_bits(numbers().next().unwrap())),
        "packed fixed64" => numbers().map(|number| json!(number.to_string())).collect(),
        "packed double" => numbers().map(|number| json!(f64::from_bits(number))).collect(),
        other => message(other, bytes),
    }
}

fn taken<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at(length);
    *rest = after;
    taken
}

fn varint(rest: &mut &[u8]) -> u64 {
    let length = rest.iter().position(|byte| byte & 0x80 == 0).expect("a number ends") + 1;
    taken(rest, length).iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f))
}
