/** What the server answers of a tenant's period, and of the one before it. */
import type { AnswerOf } from '../../api/client.ts'

export type Overview = AnswerOf<'/admin/v1/tenants/{tenant_id}/overview', 'get'>
