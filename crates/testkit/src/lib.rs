//! Scripted model and tools, memory log, manual clock, conformance suite and simulator.
