"""The cloud batch clients, and the transport that records and replays calls."""
