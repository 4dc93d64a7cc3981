"""Data files described and added without being rewritten."""
