//! How a society moves: one actor, durable turns, and the programming model.
