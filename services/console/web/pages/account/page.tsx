/** The operator's own account: who they are, password, second factor and sessions. */
import type { Operator } from '../../api/session.ts'
import { Badge } from '../../components/badge.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import { PasswordPanel } from './password.tsx'
import { SecondFactorPanel } from './second-factor.tsx'
import { SessionsPanel } from './sessions.tsx'

const signInWays = ({ password, oidc }: Operator): string =>
  [...(password ? ['password'] : []), ...(oidc ? ['single sign-on'] : [])].join(', ')

export function Page() {
  const { operator } = useSignedIn()
  return (
    <Frame title="Account">
      <Panel title="You">
        <Facts
          facts={[
            ['Name', operator.name],
            ['Email', operator.email],
            ['Role', <Badge key="role">{operator.role}</Badge>],
            ['Signs in by', signInWays(operator)],
            ['Tenants', operator.tenants === 'all' ? 'all' : operator.tenants.join(', ')],
          ]}
        />
      </Panel>
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <PasswordPanel />
        <SecondFactorPanel />
      </div>
      <SessionsPanel />
    </Frame>
  )
}
