// Sets the chosen theme before the first paint. The system's theme holds when there is no choice.
try {
  const theme = localStorage.getItem('di.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // Storage can be switched off: the system's theme holds.
}
