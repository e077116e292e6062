/** The path of a signal, marked where the service saw or verified it itself. */
import { isServerCategory } from '#shared/core/signals/signal-definition.ts'
import { Badge } from './badge.tsx'

const isSeenByServer = (path: string): boolean => isServerCategory(path.split('.')[0]!)

export const seenByServerText = 'Seen by the server'

export function SignalName({ path, title }: { path: string; title?: string | undefined }) {
  return (
    <span className="inline-flex flex-wrap items-baseline gap-x-2" title={title}>
      <code className="font-mono text-sm break-all">{path}</code>
      {isSeenByServer(path) && <Badge tone="accent">{seenByServerText}</Badge>}
    </span>
  )
}
