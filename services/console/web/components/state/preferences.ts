/** What a person chose for this browser: the theme, and UTC or local time. */
import { useSyncExternalStore } from 'react'

export type Theme = 'system' | 'light' | 'dark'
export type Zone = 'utc' | 'local'
type Preferences = { theme: Theme; zone: Zone; isSystemDark: boolean }

const themeKey = 'di.theme'
const zoneKey = 'di.zone'
const listeners = new Set<() => void>()
const systemDark = matchMedia('(prefers-color-scheme: dark)')

let current: Preferences = {
  theme: one(read(themeKey), ['light', 'dark'], 'system'),
  zone: one(read(zoneKey), ['utc'], 'local'),
  isSystemDark: systemDark.matches,
}
systemDark.addEventListener('change', ({ matches }) =>
  change({ ...current, isSystemDark: matches }),
)

export function usePreferences(): Preferences {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => current,
  )
}

export function setTheme(theme: Theme): void {
  const root = document.documentElement
  if (theme === 'system') delete root.dataset.theme
  else root.dataset.theme = theme
  keep(themeKey, theme)
  change({ ...current, theme })
}

export function setZone(zone: Zone): void {
  keep(zoneKey, zone)
  change({ ...current, zone })
}

function change(next: Preferences): void {
  current = next
  for (const listener of listeners) listener()
}

function one<T extends string>(text: string | null, values: T[], usual: T): T {
  return values.find((value) => value === text) ?? usual
}

/** Storage can be switched off: choices then last as long as the page. */
function read(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch {
    return
  }
}
