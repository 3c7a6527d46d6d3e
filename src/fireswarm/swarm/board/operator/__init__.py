"""Operator actions on a task, by command or in the Firebase console; explanations of tasks that do not move."""
