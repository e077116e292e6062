/** The phone that an install is on, with a link to it. */
import { Link } from '@tanstack/react-router'
import type { components } from '../../api/schema.ts'
import { IdText } from '../../components/id.tsx'
import { counted } from '../../components/words.ts'

type Phone = components['schemas']['DevicePhone']

/** @property phone null when nothing was decided; undefined while it cannot be read */
export function PhoneFact({ tenant, phone }: { tenant: string; phone: Phone | null | undefined }) {
  if (phone === undefined) return <span className="text-muted">cannot be read now</span>
  if (phone === null) return <span className="text-muted">nothing tells it</span>
  const { phone_id: phoneId, installs, confidence } = phone
  return (
    <>
      <Link
        params={{ tenant, phoneId }}
        title={`Confidence ${confidence}`}
        to="/t/$tenant/phones/$phoneId"
      >
        <IdText value={phoneId} />
      </Link>
      <span className="pl-2 text-muted">{counted(installs, 'install')}</span>
    </>
  )
}
