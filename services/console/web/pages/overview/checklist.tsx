/** The first look at a tenant without an event: what to do, instead of numbers that are all zero. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Badge } from '../../components/badge.tsx'
import { Panel } from '../../components/page.tsx'
import { useMay } from '../../shell/operator.ts'
import type { Overview } from './overview.ts'

export function Checklist({ tenant, overview }: { tenant: string; overview: Overview }) {
  const mayInvite = useMay('admin')
  const isReceiving = overview.webhook.state === 'on'
  return (
    <Panel title="Begin here: no event has arrived yet">
      <ol className="divide-y divide-line">
        <Step
          about="Sign a request with the tenant's secret; the page has code for it."
          isDone={false}
        >
          <Link params={{ tenant }} to="/manage/integrations/$tenant">
            Send the first event
          </Link>
        </Step>
        <Step about="Alerts go to an address of yours, signed." isDone={isReceiving}>
          <Link params={{ tenant }} to="/t/$tenant/webhooks">
            Receive alerts by webhook
          </Link>
        </Step>
        <Step about="Every request is here, with what was wrong with it." isDone={false}>
          <Link params={{ tenant }} to="/manage/integrations/$tenant/requests">
            Test the signature
          </Link>
        </Step>
        {mayInvite && (
          <Step about="Analysts, engineers and admins sign in by themselves." isDone={false}>
            <Link to="/manage/operators">Invite your team</Link>
          </Step>
        )}
      </ol>
    </Panel>
  )
}

function Step({
  about,
  isDone,
  children,
}: {
  about: string
  isDone: boolean
  children: ReactNode
}) {
  return (
    <li className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1 px-4 py-3">
      <div>
        <div className="font-medium">{children}</div>
        <p className="text-muted text-sm">{about}</p>
      </div>
      {isDone && <Badge tone="good">done</Badge>}
    </li>
  )
}
