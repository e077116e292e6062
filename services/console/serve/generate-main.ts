// `npm run generate:client`: writes the types of the pages' client from the admin API's document.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeClientTypes } from './client-types.ts'
import { describeAdminApi } from './describe-admin-api.ts'
import { webFolder } from './pages-folder.ts'

writeFileSync(join(webFolder, 'api/schema.ts'), writeClientTypes(await describeAdminApi()))
