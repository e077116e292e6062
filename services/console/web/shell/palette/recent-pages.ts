/** The pages that were open last in this tab, for the command palette. */
import { useLocation } from '@tanstack/react-router'
import { useEffect } from 'react'
import type { Entry } from './entry.ts'

const keptMax = 8
const storageKey = 'di.recent'

type Recent = { to: string; title: string }

function read(): Recent[] {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey) ?? '[]') as Recent[]
  } catch {
    return []
  }
}

/** A page names the window once it is shown. */
const namedMs = 500

/** Remembers each page that is open for a moment. */
export function useKeepRecent(): void {
  const { pathname } = useLocation()
  useEffect(() => {
    const timer = setTimeout(() => {
      const [title = ''] = document.title.split(' · ')
      const others = read().filter(({ to }) => to !== pathname)
      const kept = [{ to: pathname, title }, ...others].slice(0, keptMax)
      try {
        sessionStorage.setItem(storageKey, JSON.stringify(kept))
      } catch {
        // Without storage there are none.
      }
    }, namedMs)
    return () => clearTimeout(timer)
  }, [pathname])
}

/** Without the page that is open. */
export function useRecentPages(): Entry[] {
  const { pathname } = useLocation()
  return read()
    .filter(({ to }) => to !== pathname)
    .map(({ to, title }) => {
      const more = decodeURIComponent(to.split('/').at(-1) ?? '')
      return { key: `recent ${to}`, kind: 'Recent', text: title, more, icon: 'refresh', to }
    })
}
