/** The parts of the admin API's OpenAPI document that no route describes. */
import type { OpenapiOptions } from '#shared/io/http/openapi.ts'
import { describeRoute } from '../http/route-description.ts'

const tags = {
  Tenants: 'Tenants, their rates and how long their data is kept.',
  Credentials: 'HMAC secrets, webhook secrets and API keys.',
  Submissions: 'What reached the edges, and why a submission was refused.',
  Attestation: 'The apps of a tenant, and why evidence of a phone is rejected.',
  Alerts: 'Alerts: the queue, dispositions, notes and bulk changes.',
  Cases: 'The alerts of a phone, a device or a user, settled together.',
  'Saved views': 'Filters of pages under a name.',
  Entities: 'Devices, users and events behind the alerts.',
  Webhooks: 'The webhook of a tenant and its deliveries.',
  Policies: 'Policies, their versions, backtests and shadow policies.',
  Proposals: 'Four eyes: changes that another administrator approves.',
  Analytics: 'What the telemetry and the dispositions of a tenant show.',
  SQL: 'Queries over the analytics views, and the analysts who run them.',
  Lists: 'Allow and deny lists of devices and users.',
  Labels: 'What turned out to be fraud.',
  Erasure: 'The erasure of devices and users.',
  Audit: 'Who changed what, and when.',
  Sessions: 'Signing in, and the own account.',
  Operators: 'The people who work in the console.',
}

/** @param prefix what the paths of the admin API begin with */
export function toAdminDocument(prefix: string): OpenapiOptions {
  return {
    document: {
      info: {
        title: 'Device intelligence: admin API',
        version: '1.0.0',
        description: 'For operators: tenants, credentials, webhooks, policies, dispositions.',
      },
      servers: [{ url: '../..', description: 'The host and folder that serve the console.' }],
      tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
      securitySchemes: {
        admin: { type: 'http', scheme: 'bearer', description: 'ADMIN_TOKEN.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-di_session',
          description: 'The session of a signed-in operator.',
        },
      },
      security: [{ admin: [] }, { session: [] }],
    },
    describeRoute: (method, path) => describeRoute(method, path.slice(prefix.length)),
  }
}
