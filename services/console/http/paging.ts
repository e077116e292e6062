/** Lists in pages: their parameters and answers have the same words as those of the REST API. */
import { z } from 'zod'
import { cursorParameter } from '#shared/core/http/api-schemas.ts'
import { type CursorScope, decodeCursor, encodeCursor } from '#shared/core/http/pagination.ts'
import { limitSchema } from './schemas.ts'

/** The parameters of a list. @param most rows of a page @param usual rows without `limit` */
export const pageQuery = (most: number, usual: number) => ({
  limit: limitSchema(most, usual),
  cursor: cursorParameter('`next_cursor` of the previous page, with the same filters.'),
})

/** What a list answers, beside what it adds. */
export const pageSchema = <Row extends z.ZodType>(row: Row) =>
  z.object({
    data: z.array(row),
    limit: z.int().describe('the most rows of this page'),
    next_cursor: z.string().nullable().describe('`cursor` of the next page; null on the last one'),
  })

/**
 * Reads the cursor of a list that is ordered by one field.
 * @param field the schema of that field
 * @returns its value in the last row of the previous page; undefined on the first page
 * @throws Problem invalid_query for a cursor of another list, tenant or filter
 */
export function readCursor<Value extends string | number>(
  scope: CursorScope,
  cursor: string | undefined,
  field: z.ZodType<Value>,
): Value | undefined {
  return cursor === undefined ? undefined : decodeCursor(scope, cursor, z.tuple([field]))[0]
}

/**
 * A page of rows.
 * @param rows one more than `limit` where there are so many, which shows that a page follows
 * @param last the ordering field of a row
 */
export function toPage<Row>(
  scope: CursorScope,
  { rows, limit }: { rows: readonly Row[]; limit: number },
  last: (row: Row) => string | number,
): { data: Row[]; limit: number; next_cursor: string | null } {
  const data = rows.slice(0, limit)
  const next_cursor = rows.length > limit ? encodeCursor(scope, [last(data.at(-1)!)]) : null
  return { data, limit, next_cursor }
}
