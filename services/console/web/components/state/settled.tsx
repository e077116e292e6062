/**
 * Panels of one page that are read apart, shown together: one whose answer comes late does not move
 * those below it.
 */
import { useIsFetching } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'

/** After this they are shown as they are: each says by itself that it waits. */
const waitMs = 1_500

export function Settled({ skeleton, children }: { skeleton: ReactNode; children: ReactNode }) {
  const firstReads = useIsFetching({ predicate: ({ state }) => state.data === undefined })
  const [isBegun, setBegun] = useState(false)
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    // The panels have begun their reads by now.
    setBegun(true)
    const timer = setTimeout(() => setShown(true), waitMs)
    return () => clearTimeout(timer)
  }, [])
  useEffect(() => {
    if (isBegun && firstReads === 0) setShown(true)
  }, [isBegun, firstReads])
  return (
    <>
      {!isShown && skeleton}
      <div className={isShown ? 'contents' : 'hidden'}>{children}</div>
    </>
  )
}
