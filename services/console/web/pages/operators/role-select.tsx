/** A role, with what it may do. */
import { type Role, roles } from '../../api/session.ts'
import { Select } from '../../components/field.tsx'

const abilities: Record<Role, string> = {
  viewer: 'Sees alerts, devices, policies and deliveries.',
  analyst: 'As a viewer, and sets dispositions, writes notes and runs SQL.',
  engineer: 'As an analyst, and drafts policies, sets webhooks and replays deliveries.',
  admin: 'Everything: publishes, rotates, erases, and manages tenants and operators.',
}

export function RoleSelect({ role, onChange }: { role: Role; onChange: (role: Role) => void }) {
  return (
    <Select
      hint={abilities[role]}
      label="Role"
      onChange={({ target }) => onChange(target.value as Role)}
      value={role}
    >
      {roles.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </Select>
  )
}
