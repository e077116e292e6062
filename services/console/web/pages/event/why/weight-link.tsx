/** Leads from a reason to what it weighs: the editor of a draft, at the weight or the rule. */
import { Link, useParams } from '@tanstack/react-router'
import { useMay } from '../../../shell/operator.ts'

export function WeightLink({ weight, of }: { weight: string; of: string }) {
  const { tenant = '' } = useParams({ strict: false })
  if (!useMay('engineer')) return null
  return (
    <Link
      aria-label={`Weight of ${of} in a draft`}
      params={{ tenant }}
      search={{ weight }}
      to="/t/$tenant/policies"
    >
      Weight
    </Link>
  )
}
