// `npm run generate:client`: writes what is made from the admin API's document, the types of the
// pages' client and the table of roles.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeClientTypes } from './client-types.ts'
import { describeAdminApi } from './describe-admin-api.ts'
import { rolesPage, webFolder } from './pages-folder.ts'
import { writeRoleTable } from './role-table.ts'

const document = await describeAdminApi()
writeFileSync(join(webFolder, 'api/schema.ts'), writeClientTypes(document))
writeFileSync(rolesPage, writeRoleTable(document))
