// The functions that analysts of the local stack may use. ClickHouse has no grant for a function,
// and this engine's `file()` reads every file that its process may read. So functions are allowed
// by the engine's documented categories; a function of any other category is rejected, including
// those of later engines.

/** A row of `system.functions`. */
export type EngineFunction = {
  name: string
  /** The function of which it is an alias; empty for none. */
  alias_to: string
  categories: string
  /** 1 for an aggregate function, else 0. */
  is_aggregate: number
}

/** All functions of these categories are allowed, except `costlyFunctions`. */
const allowedCategories = new Set([
  'Arithmetic',
  'Arrays',
  'Bit',
  'Bitmap',
  'Comparison',
  'Conditional',
  'Dates and Times',
  'Distance',
  'Encoding',
  'Financial',
  'Hash',
  'IP Address',
  'JSON',
  'Logical',
  'Map',
  'Mathematical',
  'Null',
  'Random Number',
  'Rounding',
  'String',
  'String Replacement',
  'String Search',
  'String Splitting',
  'Time Window',
  'Tuple',
  'Type Conversion',
  'URL',
  'UUID',
])

/** Of other categories only these: they inspect values, or are part of clients' first queries. */
const allowedFunctions = new Set([
  'bar',
  'byteSize',
  'countDigits',
  'currentDatabase',
  'currentRoles',
  'currentUser',
  'digits',
  'displayName',
  'dumpColumnStructure',
  'finalizeAggregation',
  'formatReadableDecimalSize',
  'formatReadableQuantity',
  'formatReadableSize',
  'formatReadableTimeDelta',
  'FQDN',
  'geoDistance',
  'getSetting',
  'getSettingOrDefault',
  'greatCircleAngle',
  'greatCircleDistance',
  'hostName',
  'identity',
  'ignore',
  'initializeAggregation',
  'isConstant',
  'isDecimalOverflow',
  'materialize',
  'minSampleSizeContinuous',
  'minSampleSizeConversion',
  'neighbor',
  'parseReadableSize',
  'parseReadableSizeOrNull',
  'parseReadableSizeOrZero',
  'parseTimeDelta',
  'pointInPolygon',
  'rowNumberInAllBlocks',
  'rowNumberInBlock',
  'runningDifference',
  'runningDifferenceStartingWithFirstValue',
  'serverUUID',
  'throwIf',
  'toColumnTypeName',
  'toTypeName',
  'transform',
  'uptime',
  'variantElement',
  'variantType',
  'version',
  'visibleWidth',
])

/**
 * Their cost grows with the product of their arguments' lengths, and the engine does not check the
 * time limit meanwhile: two strings of 60,000 characters take seconds in every row.
 */
const costlyFunctions = new Set([
  'arrayLevenshteinDistance',
  'arrayLevenshteinDistanceWeighted',
  'arraySimilarity',
  'damerauLevenshteinDistance',
  'editDistance',
  'editDistanceUTF8',
  'hasSubstr',
  'jaroSimilarity',
  'jaroWinklerSimilarity',
  'multiFuzzyMatchAllIndices',
  'multiFuzzyMatchAny',
  'multiFuzzyMatchAnyIndex',
  'punycodeEncode',
  'punycodeDecode',
  'tryPunycodeDecode',
])

/** Table functions that only use their arguments, and words of the syntax. */
const allowedTableFunctions = new Set([
  'format',
  'generate_series',
  'generateSeries',
  'merge',
  'null',
  'numbers',
  'numbers_mt',
  'values',
  'view',
  'zeros',
  'zeros_mt',
])

export type RefusedNames = {
  /** Rejected at any place: a function can be named without being called. Lower case. */
  functions: ReadonlySet<string>
  /** Rejected before a parenthesis. Lower case. */
  tableFunctions: ReadonlySet<string>
}

/** All names of the engine that an analyst cannot use. */
export function toRefusedNames(
  functions: readonly EngineFunction[],
  tableFunctions: readonly string[],
): RefusedNames {
  const byName = new Map(functions.map((one) => [one.name, one]))
  const refused = functions.filter((one) => !isAllowed(byName.get(one.alias_to) ?? one))
  const allowed = new Set(functions.filter((one) => !refused.includes(one)).map(toLowerName))
  return {
    functions: new Set(refused.map(toLowerName)),
    tableFunctions: new Set(
      tableFunctions
        .filter((name) => !allowedTableFunctions.has(name))
        .map((name) => name.toLowerCase())
        .filter((name) => !allowed.has(name)),
    ),
  }
}

function isAllowed({ name, categories, is_aggregate }: EngineFunction): boolean {
  if (is_aggregate === 1 || allowedFunctions.has(name)) return true
  return allowedCategories.has(categories) && !costlyFunctions.has(name)
}

const toLowerName = ({ name }: EngineFunction) => name.toLowerCase()
