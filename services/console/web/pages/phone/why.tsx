/** Why an install counts as on its phone: every comparison as a bar for or against it. */
import { Link } from '@tanstack/react-router'
import { classes } from '../../components/classes.ts'
import { Id, IdText } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { toFactor, toFieldName, toFound, toSigned } from './evidence-words.ts'
import type { Evidence, Install } from './phones.ts'

const half = 50

/** A bar from the middle: to the right for one phone, to the left against it. */
function Bar({ weight, most }: { weight: number; most: number }) {
  const width = most === 0 ? 0 : (Math.abs(weight) / most) * half
  return (
    <span aria-hidden="true" className="relative block h-3">
      <span className="absolute inset-y-[-0.6rem] left-1/2 w-px bg-line-strong" />
      <span
        className={classes('absolute inset-y-0 rounded-sm', weight > 0 ? 'bg-accent' : 'bg-warn')}
        style={
          weight > 0
            ? { left: `${half}%`, width: `${width}%` }
            : { right: `${half}%`, width: `${width}%` }
        }
      />
    </span>
  )
}

const columnsOf = (most: number): Column<Evidence>[] => [
  { id: 'field', head: 'Compared', cell: (one) => toFieldName(one), width: '14rem' },
  { id: 'found', head: 'Found', cell: (one) => <Found one={one} /> },
  {
    id: 'bar',
    head: 'Against, for',
    cell: ({ weight }) => <Bar most={most} weight={weight} />,
    width: '22%',
  },
  {
    id: 'weight',
    head: 'Weight',
    numeric: true,
    cell: ({ weight }) => <span title={toFactor(weight)}>{toSigned(weight)}</span>,
    width: '5.5rem',
  },
  {
    id: 'holders',
    head: 'Phones with it',
    numeric: true,
    cell: ({ holders }) =>
      holders === null ? (
        <span className="text-muted">not counted</span>
      ) : (
        holders.toLocaleString('en')
      ),
    width: '8rem',
  },
]

function Found({ one }: { one: Evidence }) {
  const text = toFound(one)
  return <span title={text}>{text}</span>
}

export function Why({ install, tenant }: { install: Install; tenant: string }) {
  const { evidence } = install
  const most = Math.max(...evidence.map(({ weight }) => Math.abs(weight)), 0)
  const sum = evidence.reduce((all, { weight }) => all + weight, 0)
  return (
    <Panel action={<Id value={install.device_id} />} title="Why is it this phone?">
      <p className="px-4 py-3">
        <Verdict install={install} tenant={tenant} />
      </p>
      {evidence.length === 0 ? (
        <Empty title="It was compared with no other phone">
          No phone that was known then had a value in common with it.
        </Empty>
      ) : (
        <>
          <Table
            columns={columnsOf(most)}
            heightClass="max-h-96"
            label="Evidence"
            minWidth="48rem"
            rowKey={({ field }) => field}
            rows={[...evidence].sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))}
          />
          <p className="px-4 py-3 text-muted">
            Together {toSigned(sum)}: all of this is {toFactor(sum)} on one phone as on two. Most
            phones are others, which counts against it: the confidence is lower than the weights
            alone would make it.
          </p>
        </>
      )}
    </Panel>
  )
}

const toPercent = (share: number): string =>
  `${(Math.floor(share * 10_000) / 100).toLocaleString('en')} %`

/** What was decided, in a sentence. */
function Verdict({ install, tenant }: { install: Install; tenant: string }) {
  const { link, confidence, possible_phone_id: possible, possible_confidence: chance } = install
  if (link === 'corrected') return <span>An analyst put it here. The service had decided:</span>
  if (link === 'linked') {
    return <span>It is this phone with a confidence of {toPercent(confidence)}.</span>
  }
  if (possible === null) return <span>It is the first install of its phone.</span>
  return (
    <>
      <span>Too uncertain to count: with {toPercent(chance ?? 0)} it may be </span>
      <Link params={{ tenant, phoneId: possible }} to="/t/$tenant/phones/$phoneId">
        <IdText value={possible} />
      </Link>
    </>
  )
}
