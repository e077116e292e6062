/** The raw body of an event, loaded when the person wants to read it. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { Loaded, SkeletonRows } from '../../components/states.tsx'

/** More than this would slow the page. */
const shownCharactersMax = 200_000

export function RawBody({ eventId }: { eventId: string }) {
  const [wanted, setWanted] = useState(false)
  const body = useQuery({
    queryKey: ['event-body', eventId],
    queryFn: () =>
      ok(api.GET('/admin/v1/events/{event_id}/body', { params: { path: { event_id: eventId } } })),
    enabled: wanted,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <Panel action={body.data && <Intact intact={body.data.intact} />} title="Raw body">
      <div className="px-4 py-3">
        {wanted ? (
          <Loaded query={body} skeleton={<SkeletonRows rows={4} />}>
            {({ body: text }) => <CodeBlock code={toShown(text)} label="Raw body" />}
          </Loaded>
        ) : (
          <Button onClick={() => setWanted(true)}>Load the raw body</Button>
        )}
      </div>
    </Panel>
  )
}

/** @param intact null where hashes stand for identifiers of the phone */
function Intact({ intact }: { intact: boolean | null }) {
  if (intact === null) return <Badge>identifiers are hashed</Badge>
  return intact ? (
    <Badge tone="good">as it was signed</Badge>
  ) : (
    <Badge tone="bad">changed since it was stored</Badge>
  )
}

/** Indented where it is JSON; the start of it where it is very long. */
function toShown(text: string): string {
  let shown = text
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    // What is no JSON is shown as it is.
  }
  if (shown.length <= shownCharactersMax) return shown
  return `${shown.slice(0, shownCharactersMax)}\n… ${shown.length - shownCharactersMax} more`
}
