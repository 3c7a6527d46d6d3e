"""The capability `web_fetch`: fetch pages over HTTP with address rules, convert them to text."""
