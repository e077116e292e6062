/** Schemas of the admin API: queries in SQL, the views, and the cookbook. */
import { z } from 'zod'
import {
  sqlCharactersMax,
  sqlParameterCharactersMax,
  sqlParametersBytesMax,
  sqlParametersMax,
  sqlRowsMax,
} from '#shared/core/base/limits/analytics.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { encodeParameters } from '#shared/io/analytics/analyst-query.ts'

export const sqlBody = z.strictObject({
  sql: operatorText(sqlCharactersMax)
    .min(1)
    .meta({ examples: ['select 1', 'describe events'] }),
  parameters: z
    .record(z.string().regex(/^\w{1,64}$/), operatorText(sqlParameterCharactersMax))
    .refine((values) => Object.keys(values).length <= sqlParametersMax, {
      error: `must be at most ${sqlParametersMax}`,
    })
    .refine((values) => encodeParameters(values).length <= sqlParametersBytesMax, {
      error: `must have at most ${sqlParametersBytesMax} bytes, encoded as in a URL`,
    })
    .default({})
    .describe(
      'the values of `{name:Type}`; `tenant` is always the tenant of the path; ' +
        `at most ${sqlParametersBytesMax} bytes, encoded as in a URL`,
    ),
  format: z
    .enum(['rows', 'csv', 'excel'])
    .default('rows')
    .describe(
      `rows: at most ${sqlRowsMax} for a page; csv: all, within the limits of analysts; excel: ` +
        'the same with a byte order mark, and long ids of digits as text',
    ),
})

export const sqlRowsSchema = z.object({
  columns: z.array(z.object({ name: z.string(), type: z.string() })),
  rows: z
    .array(z.array(z.unknown()))
    .describe('values in the order of the columns; integers of 64 bits, nan and inf are text'),
  hints: z.array(z.string()).describe('what may be wrong with the parameters'),
  truncated: z.boolean().describe('whether there are more rows'),
  rows_read: z.number().nullable().describe('null for operators who are limited to some tenants'),
  bytes_read: z.number().nullable().describe('as `rows_read`'),
  duration_ms: z.number().int(),
})

export const viewsSchema = z.object({
  database: z.string(),
  needs_server: z
    .boolean()
    .describe('whether queries of this operator are refused with `analysts_need_a_server`'),
  data: z.array(
    z.object({
      name: z.string(),
      comment: z.string(),
      columns: z.array(z.object({ name: z.string(), type: z.string(), comment: z.string() })),
    }),
  ),
})

export const cookbookSchema = z.object({
  data: z.array(
    z.object({
      name: z.string(),
      question: z.string(),
      answer: z.string(),
      advice: z.string(),
      parameters: z
        .record(z.string(), z.string())
        .describe('with default values; tenant, from and to are not named'),
      sql: z.string(),
    }),
  ),
})
