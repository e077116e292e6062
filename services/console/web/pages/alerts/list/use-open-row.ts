/** The row that is open: at once on the page, and a moment later in the URL. */
import { useEffect, useRef, useState } from 'react'
import { useUrlState } from '../../../components/state/url-state.ts'

/** Keys that repeat are faster than the router. */
const settleMs = 150

/**
 * @param name of the parameter in the URL
 * @returns its id, empty when none is open, and a way to open another
 */
export function useOpenRow(name: 'alert' | 'case'): [id: string, open: (id: string) => void] {
  const [inUrl, setInUrl] = useUrlState(name)
  const [id, setId] = useState(inUrl)
  const written = useRef(inUrl)
  // Back, forward and links change the URL alone. What was written here is older than the page.
  useEffect(() => {
    if (inUrl === written.current) return
    written.current = inUrl
    setId(inUrl)
  }, [inUrl])
  useEffect(() => {
    if (id === written.current) return
    const timer = setTimeout(() => {
      written.current = id
      setInUrl(id)
    }, settleMs)
    return () => clearTimeout(timer)
  }, [id, setInUrl])
  return [id, setId]
}

/** The value once it has stayed the same for a moment. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settleMs)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
