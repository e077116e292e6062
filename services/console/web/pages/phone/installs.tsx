/** The installs of a phone as one timeline, each with how it came to be on it. */
import { Link } from '@tanstack/react-router'
import { Badge, type Tone } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { IdText } from '../../components/id.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { type Install, maySplit, type Phone } from './phones.ts'

const links: Readonly<Record<Install['link'], { word: string; tone: Tone; about: string }>> = {
  first: { word: 'first', tone: 'neutral', about: 'The first install of a phone' },
  linked: { word: 'recognised', tone: 'good', about: 'The service recognised the phone' },
  possible: { word: 'possible', tone: 'warn', about: 'It may be on another phone as well' },
  corrected: { word: 'by an analyst', tone: 'accent', about: 'An analyst put it here' },
}

export function Installs({
  phone,
  tenant,
  selected,
  onSelect,
  onSplit,
}: {
  phone: Phone
  tenant: string
  selected: string | undefined
  onSelect: (deviceId: string) => void
  /** Left out for those who may not. */
  onSplit?: ((install: Install) => void) | undefined
}) {
  const span = { from: Date.parse(phone.first_seen_at), to: Date.parse(phone.last_seen_at) }
  const columns: Column<Install>[] = [
    {
      id: 'device',
      head: 'Install',
      cell: ({ device_id: id }) => (
        <Link
          onClick={(event) => event.stopPropagation()}
          params={{ tenant, deviceId: id }}
          to="/t/$tenant/devices/$deviceId"
        >
          <IdText value={id} />
        </Link>
      ),
    },
    {
      id: 'span',
      head: 'Timeline',
      cell: (install) => <Span install={install} span={span} />,
      width: '17%',
    },
    {
      id: 'first',
      head: 'First seen',
      cell: (one) => <Time at={one.first_seen_at} />,
      width: '6.5rem',
    },
    {
      id: 'last',
      head: 'Last seen',
      cell: (one) => <Time at={one.last_seen_at} />,
      width: '6.5rem',
    },
    {
      id: 'link',
      head: 'Link',
      cell: ({ link }) => (
        <span title={links[link].about}>
          <Badge tone={links[link].tone}>{links[link].word}</Badge>
        </span>
      ),
      width: '7.5rem',
    },
    {
      id: 'confidence',
      head: 'Confidence',
      numeric: true,
      // Never rounded up to what is certain.
      cell: ({ confidence }) => (Math.floor(confidence * 1e4) / 1e4).toFixed(4),
      width: '6rem',
    },
    { id: 'risk', head: 'Risk score', numeric: true, cell: (one) => one.risk_score, width: '6rem' },
    {
      id: 'why',
      head: <span className="sr-only">Why and split</span>,
      cell: (install) => (
        <span className="flex justify-end gap-1">
          {onSplit !== undefined && maySplit(install, phone.phone_id) && (
            <Button
              onClick={(event) => {
                event.stopPropagation()
                onSplit(install)
              }}
              small
            >
              Split off
            </Button>
          )}
          <Button
            aria-pressed={selected === install.device_id}
            onClick={(event) => {
              event.stopPropagation()
              onSelect(install.device_id)
            }}
            small
          >
            Why
          </Button>
        </span>
      ),
      width: '9rem',
    },
  ]
  return (
    <Table
      columns={columns}
      heightClass="max-h-96"
      label="Installs"
      minWidth="58rem"
      onSelect={({ device_id: id }) => onSelect(id)}
      rowKey={({ device_id: id }) => id}
      rows={phone.installs}
      selected={selected}
    />
  )
}

/** When an install was in use, within the time of the phone. */
function Span({ install, span }: { install: Install; span: { from: number; to: number } }) {
  const whole = Math.max(1, span.to - span.from)
  const left = (Date.parse(install.first_seen_at) - span.from) / whole
  const width = (Date.parse(install.last_seen_at) - span.from) / whole - left
  return (
    <span aria-hidden="true" className="relative block h-2 rounded-full bg-hover">
      <span
        className="absolute inset-y-0 min-w-1.5 rounded-full bg-accent"
        style={{ left: `min(${left * 100}%, calc(100% - 0.375rem))`, width: `${width * 100}%` }}
      />
    </span>
  )
}
