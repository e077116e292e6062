/** What a page shows before, instead of and after its content: skeleton, empty, failed. */
import { useQueryClient } from '@tanstack/react-query'
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

/**
 * Whether the console would answer the same again: it is not there, or not for this person. What
 * something in between answers can change at any time.
 */
const isFinal = (problem: ApiProblem | null): boolean =>
  problem !== null &&
  problem.code !== 'foreign_answer' &&
  (problem.status === 403 || problem.status === 404)

/** The id of a failed request is for whoever runs the service: what a person typed is no failure. */
const requestIdOf = (problem: ApiProblem | null): string | null =>
  problem !== null && problem.status >= 500 ? problem.requestId : null

/** An error, with its request id and a way to try again where that can help. */
export function Failed({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = error instanceof ApiProblem ? error : null
  const requestId = requestIdOf(problem)
  return (
    <div className="grid justify-items-center gap-2 px-4 py-14 text-center" role="alert">
      <p className="font-medium">
        {isFinal(problem) ? 'There is nothing to show here' : 'This could not be loaded'}
      </p>
      <p className="max-w-md text-muted">
        {problem?.message ?? 'The page met an error of its own. Try again, or reload it.'}
      </p>
      {requestId && (
        <p className="text-muted text-sm">
          Request <Id most={40} value={requestId} />
        </p>
      )}
      {onRetry && !isFinal(problem) && (
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
  const requestId = requestIdOf(problem)
  return (
    <div className="rounded-md bg-bad-soft px-3 py-2 text-bad" role="alert">
      {problem?.message ?? 'This did not work. Try again.'}
      {requestId && (
        <div className="mt-1 text-xs">
          Request <Id most={40} value={requestId} />
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
  if (query.error) return <Failed error={query.error} onRetry={() => void query.refetch()} />
  return <Waiting onRetry={() => void query.refetch()}>{skeleton}</Waiting>
}

/** After this a page says that it waits. */
const slowMs = 5_000

/** What is shown meanwhile; after a while it says that no answer comes, with a way out. */
export function Waiting({ onRetry, children }: { onRetry: () => void; children: ReactNode }) {
  const [isSlow, setSlow] = useState(false)
  const client = useQueryClient()
  useEffect(() => {
    if (isSlow) return
    const timer = setTimeout(() => setSlow(true), slowMs)
    return () => clearTimeout(timer)
  }, [isSlow])
  if (!isSlow) return children
  const again = async () => {
    // A first read that is under way would be waited for instead.
    await client.cancelQueries({ predicate: ({ state }) => state.data === undefined })
    setSlow(false)
    onRetry()
  }
  return (
    <>
      <p
        className="flex flex-wrap items-center gap-3 rounded-md bg-warn-soft px-3 py-2 text-warn"
        role="status"
      >
        <span>
          The console has not answered for 5 seconds. This page shows it as soon as it does.
        </span>
        <Button onClick={() => void again()} small>
          Try again
        </Button>
      </p>
      {children}
    </>
  )
}
