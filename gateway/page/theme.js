// Before anything is drawn: the theme that was chosen here, if one was; else the system's.
"use strict"
try {
  const chosen = localStorage.getItem("cauce.theme")
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen
} catch {
  // no storage: the system's theme it is
}
