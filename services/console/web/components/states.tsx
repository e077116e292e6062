/** What a page shows before, instead of and after its content: skeleton, empty, failed. */
import { type ReactNode, useEffect, useState } from 'react'
import { ApiProblem } from '../api/client.ts'
import { Button } from './button.tsx'
import { classes } from './classes.ts'
import { Id } from './id.tsx'

/** Says what is missing and what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="grid justify-items-center gap-2 px-4 py-14 text-center">
      <p className="font-medium">{title}</p>
      {children && (
        <div className="grid max-w-md justify-items-center gap-3 text-muted">{children}</div>
      )}
    </div>
  )
}

/** An error with its request id and a way to try again. */
export function Failed({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = error instanceof ApiProblem ? error : null
  return (
    <div className="grid justify-items-center gap-2 px-4 py-14 text-center" role="alert">
      <p className="font-medium">This could not be loaded</p>
      <p className="max-w-md text-muted">
        {problem?.message ?? 'The page met an error of its own. Try again, or reload it.'}
      </p>
      {problem?.requestId && (
        <p className="text-muted text-sm">
          Request <Id most={40} value={problem.requestId} />
        </p>
      )}
      {onRetry && (
        <Button icon="refresh" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  )
}

/** A line inside a form or panel for what the server refused. */
export function Refused({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null
  const problem = error instanceof ApiProblem ? error : null
  return (
    <div className="rounded-md bg-bad-soft px-3 py-2 text-bad" role="alert">
      {problem?.message ?? 'This did not work. Try again.'}
      {problem?.requestId && (
        <div className="mt-1 text-xs">
          Request <Id most={40} value={problem.requestId} />
        </div>
      )}
    </div>
  )
}

export function Skeleton({ className }: { className?: string }) {
  return <div aria-hidden="true" className={classes('skeleton h-4', className)} />
}

/** Rows of the size that a table's will have. */
export function SkeletonRows({ rows = 8 }: { rows?: number }) {
  return (
    <div aria-busy="true" aria-label="Loading" role="status">
      {Array.from({ length: rows }, (_, at) => (
        <div className="flex h-9 items-center gap-6 border-line border-b px-3" key={at}>
          <Skeleton className="w-1/4" />
          <Skeleton className="w-1/3" />
          <Skeleton className="ml-auto w-16" />
        </div>
      ))}
    </div>
  )
}

type Loading<T> = {
  data: T | undefined
  error: unknown
  isPending: boolean
  refetch: () => unknown
}

/** The content of a query once it is there; its skeleton or its failure until then. */
export function Loaded<T>({
  query,
  skeleton = <SkeletonRows />,
  children,
}: {
  query: Loading<T>
  skeleton?: ReactNode
  children: (data: T) => ReactNode
}) {
  if (query.data !== undefined) return children(query.data)
  const retry = () => void query.refetch()
  if (query.error) return <Failed error={query.error} onRetry={retry} />
  return (
    <>
      <Slow onRetry={retry} />
      {skeleton}
    </>
  )
}

const slowMs = 5_000

/** Says that an answer takes long; what hangs shows no error by itself. */
export function Slow({ onRetry }: { onRetry: () => void }) {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), slowMs)
    return () => clearTimeout(timer)
  }, [])
  if (!isSlow) return null
  return (
    <p className="px-4 py-2 text-muted" role="status">
      The server has not answered yet.{' '}
      <Button onClick={onRetry} small>
        Try again
      </Button>
    </p>
  )
}
