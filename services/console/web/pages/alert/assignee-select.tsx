/** A field that names who gets an alert or a case. */
import { useQuery } from '@tanstack/react-query'
import { Select } from '../../components/field.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import { assigneesQuery } from './assignees.ts'

/**
 * @param value an email; null for no operator
 * @param withNone whether it can be taken from everybody
 */
export function AssigneeSelect({
  tenant,
  value,
  withNone = false,
  error,
  onChange,
}: {
  tenant: string
  value: string | null
  withNone?: boolean
  error?: string | undefined
  onChange: (assignee: string | null) => void
}) {
  const { operator } = useSignedIn()
  const { data, isError } = useQuery(assigneesQuery(tenant))
  const others = (data?.data ?? []).filter(({ email }) => email !== operator.email)
  return (
    <Select
      autoFocus
      error={error}
      hint={
        isError
          ? 'The other operators cannot be read now.'
          : 'Operators of the tenant who may judge.'
      }
      label="Assign to"
      onChange={({ target }) => onChange(target.value === '' ? null : target.value)}
      value={value ?? ''}
    >
      <option value={operator.email}>Me</option>
      {withNone && <option value="">No operator</option>}
      {others.map(({ email, name }) => (
        <option key={email} value={email}>
          {name === '' ? email : `${name} (${email})`}
        </option>
      ))}
    </Select>
  )
}
