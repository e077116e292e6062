/** Saved views of a tenant: each operator's own, and those that others share. */
import { randomBytes } from 'node:crypto'
import { savedViewsMax, savedViewsPerOwnerMax } from '#shared/core/base/limits/alerts.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { SavedView, SavedViewBody } from '#shared/core/operators/saved-view-schemas.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Queryable, Session } from '#shared/io/postgres/postgres.ts'

type ViewRow = Omit<SavedView, 'updated_at'> & { updated_at: Date }

const columns = `view_id, kind, name, query, shared, owner, owner = $2 as own, updated_at`
const toView = (row: ViewRow): SavedView => ({ ...row, updated_at: row.updated_at.toISOString() })

/** The views that an operator sees, by name. */
export async function listSavedViews(
  db: Queryable,
  wanted: { tenantId: string; operator: string; kind: SavedView['kind'] | undefined },
): Promise<SavedView[]> {
  const { rows } = await db.query<ViewRow>(
    `select ${columns} from saved_views
     where tenant_id = $1 and (owner = $2 or shared) and kind = coalesce($3, kind)
     order by lower(name), view_id`,
    [wanted.tenantId, wanted.operator, wanted.kind ?? null],
  )
  return rows.map(toView)
}

/**
 * Saves a view; one of the same owner, kind and name is replaced.
 * @throws Problem conflict when the owner, or the tenant, has as many as it may
 */
export function saveView(
  db: Session,
  { tenantId, operator, view }: { tenantId: string; operator: string; view: SavedViewBody },
): Promise<SavedView> {
  const { kind, name, query, shared } = view
  return db.transaction(async (tx) => {
    const { rows: counted } = await tx.query<{ views: number; own: number }>(
      `select count(*) as views, count(*) filter (where owner = $3) as own from saved_views
       where tenant_id = $1 and (kind, owner, name) <> ($2, $3, $4)`,
      [tenantId, kind, operator, name],
    )
    const { views, own } = counted[0]!
    if (own >= savedViewsPerOwnerMax) {
      throw new Problem(
        'conflict',
        `You have ${savedViewsPerOwnerMax} saved views of this tenant: remove one first.`,
      )
    }
    if (views >= savedViewsMax) {
      throw new Problem('conflict', `A tenant has at most ${savedViewsMax} saved views.`)
    }
    const { rows } = await tx.query<ViewRow>(
      `insert into saved_views (view_id, tenant_id, kind, name, query, shared, owner)
       values ($3, $1, $4, $5, $6::jsonb, $7, $2)
       on conflict (tenant_id, kind, owner, name) do update set query = excluded.query,
         shared = excluded.shared, updated_at = excluded.updated_at
       returning ${columns}`,
      [
        ...[tenantId, operator, `viw_${randomBytes(16).toString('base64url')}`],
        ...[kind, name, JSON.stringify(query), shared],
      ],
    )
    const saved = toView(rows[0]!)
    // The query may name a person, and the audit log cannot forget one.
    const after = { view_id: saved.view_id, kind, shared }
    await insertAudit(tx, { actor: operator, tenantId, action: 'saved_view.set', after })
    return saved
  })
}

/**
 * Removes a view of the operator's own; an admin removes anyone's that is shared.
 * @throws Problem saved_view_not_found
 */
export function removeView(
  db: Session,
  wanted: { tenantId: string; viewId: string; operator: string; isAdmin: boolean },
): Promise<void> {
  const { tenantId, viewId, operator, isAdmin } = wanted
  return db.transaction(async (tx) => {
    const { rows } = await tx.query<{ kind: string; owner: string }>(
      `delete from saved_views
       where tenant_id = $1 and view_id = $2 and (owner = $3 or ($4 and shared))
       returning kind, owner`,
      [tenantId, viewId, operator, isAdmin],
    )
    if (rows[0] === undefined) {
      throw new Problem('saved_view_not_found', 'There is no such view of yours.')
    }
    const before = { view_id: viewId, ...rows[0] }
    await insertAudit(tx, { actor: operator, tenantId, action: 'saved_view.removed', before })
  })
}
