/** What analysts said of the installs of a phone, the latest first, with a button that undoes it. */
import { Link } from '@tanstack/react-router'
import { Button } from '../../components/button.tsx'
import { IdText } from '../../components/id.tsx'
import { Panel } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import { useChangePhones } from './changes.ts'
import type { Correction } from './phones.ts'

/** Nothing while there is none. */
export function Corrections({
  corrections,
  tenant,
  phoneId,
}: {
  corrections: Correction[]
  tenant: string
  phoneId: string
}) {
  const mayChange = useMay('analyst')
  const { undoOne } = useChangePhones(tenant)
  if (corrections.length === 0) return null
  const columns: Column<Correction>[] = [
    { id: 'at', head: 'When', cell: ({ at }) => <Time at={at} />, width: '7rem' },
    {
      id: 'what',
      head: 'Change',
      cell: ({ kind, phone_id: to }) =>
        to === phoneId ? (
          kind === 'split' ? (
            'became this phone'
          ) : (
            'joined to this phone'
          )
        ) : (
          <>
            <span>{kind === 'split' ? 'split off to ' : 'moved to '}</span>
            <Link params={{ tenant, phoneId: to }} to="/t/$tenant/phones/$phoneId">
              <IdText value={to} />
            </Link>
          </>
        ),
      width: '22%',
    },
    {
      id: 'install',
      head: 'Install',
      cell: ({ device_id: id }) => (
        <Link params={{ tenant, deviceId: id }} to="/t/$tenant/devices/$deviceId">
          <IdText value={id} />
        </Link>
      ),
    },
    {
      id: 'reason',
      head: 'Reason',
      cell: ({ reason }) => <bdi title={reason}>{reason}</bdi>,
      width: '24%',
    },
    { id: 'by', head: 'By', cell: ({ by }) => <span title={by}>{by}</span>, width: '11rem' },
    {
      id: 'undo',
      head: 'State',
      cell: (one) => <State mayUndo={mayChange} one={one} onUndo={() => void undoOne(one)} />,
      width: '9rem',
    },
  ]
  return (
    <Panel title="Corrections">
      <Table
        columns={columns}
        heightClass="max-h-72"
        label="Corrections"
        minWidth="62rem"
        rowKey={({ correction_id: id }) => id}
        rows={corrections}
      />
    </Panel>
  )
}

function State({
  one,
  mayUndo,
  onUndo,
}: {
  one: Correction
  mayUndo: boolean
  onUndo: () => void
}) {
  if (one.undone_by !== null) {
    return (
      <span className="text-muted" title={`By ${one.undone_by}`}>
        undone
      </span>
    )
  }
  if (!one.in_force) return <span className="text-muted">replaced later</span>
  if (!mayUndo) return <span>counts</span>
  return (
    <Button onClick={onUndo} small>
      Undo
    </Button>
  )
}
