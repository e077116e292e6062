/** One alert on a page of its own, as a link leads to it. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useTenantOf } from '../../api/tenants.ts'
import { buttonClasses } from '../../components/button.tsx'
import { Page as Frame } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { alertQuery } from './alert.ts'
import { AlertDetail } from './alert-detail.tsx'
import { useChangeAlerts } from './changes.ts'
import { useNoteGuard } from './notes.ts'

export function Page() {
  const { tenant = '', alertId = '' } = useParams({ strict: false })
  const alert = useQuery(alertQuery(alertId))
  useTenantOf(alert.data?.alert.tenant_id)
  const { setDisposition } = useChangeAlerts()
  useNoteGuard()
  return (
    <Frame
      controls={
        <Link
          className={`${buttonClasses()} no-underline!`}
          search={{ alert: alertId }}
          params={{ tenant }}
          to="/t/$tenant/alerts"
        >
          Open in the list
        </Link>
      }
      title="Alert"
    >
      <Loaded query={alert}>
        {(record) => (
          <AlertDetail
            alert={record.alert}
            error={null}
            onDisposition={(to) => setDisposition([record.alert], to)}
            onRetry={() => void alert.refetch()}
            record={record}
          />
        )}
      </Loaded>
    </Frame>
  )
}
