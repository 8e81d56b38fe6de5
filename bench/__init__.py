"""Figures as ratios against peers, each pair measured in one run on one machine."""
