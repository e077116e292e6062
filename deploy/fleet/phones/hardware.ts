/**
 * Models, systems and app stores of the fleet's phones, with about their real shares, and SDK
 * versions with a long tail of old ones.
 */
import type { Random } from './random.ts'

export type Platform = 'android' | 'ios'

export type Hardware = { brand: string; model: string; os: string; apiLevel: number | null }

const androidModels: readonly (readonly [readonly [string, string], number])[] = [
  [['samsung', 'SM-S928B'], 7],
  [['samsung', 'SM-S911B'], 8],
  [['samsung', 'SM-A546B'], 12],
  [['samsung', 'SM-A155F'], 11],
  [['samsung', 'SM-A127F'], 6],
  [['Xiaomi', '23053RN02A'], 8],
  [['Xiaomi', '2201117TY'], 7],
  [['Redmi', '23124RA7EO'], 6],
  [['POCO', '23013PC75G'], 3],
  [['OPPO', 'CPH2565'], 5],
  [['realme', 'RMX3890'], 4],
  [['vivo', 'V2250'], 5],
  [['motorola', 'moto g54 5G'], 4],
  [['OnePlus', 'CPH2581'], 2],
  [['Google', 'Pixel 8'], 3],
  [['Google', 'Pixel 7a'], 3],
  [['HUAWEI', 'STK-L21'], 3],
  [['TECNO', 'TECNO KJ5'], 3],
]

const androidSystems: readonly (readonly [readonly [string, number], number])[] = [
  [['16', 36], 10],
  [['15', 35], 22],
  [['14', 34], 26],
  [['13', 33], 17],
  [['12', 31], 11],
  [['11', 30], 8],
  [['10', 29], 4],
  [['9', 28], 2],
]

const iosModels: readonly (readonly [string, number])[] = [
  ['iPhone17,1', 9],
  ['iPhone17,3', 10],
  ['iPhone16,1', 11],
  ['iPhone15,4', 10],
  ['iPhone15,2', 9],
  ['iPhone14,5', 14],
  ['iPhone13,2', 11],
  ['iPhone12,1', 12],
  ['iPhone12,8', 5],
  ['iPad13,18', 4],
]

const iosSystems: readonly (readonly [string, number])[] = [
  ['26.1', 24],
  ['26.0.1', 14],
  ['18.7.1', 18],
  ['18.6.2', 20],
  ['17.7.2', 10],
  ['16.7.12', 8],
  ['15.8.5', 4],
]

const tablets: readonly (readonly [string, string])[] = [
  ['samsung', 'SM-X210'],
  ['Lenovo', 'TB310FU'],
  ['Amazon', 'KFTRWI'],
]

/** Draws a phone with a system version that is still in use. */
export function drawHardware(platform: Platform, random: Random): Hardware {
  if (platform === 'ios') {
    const model = random.weighted(iosModels)
    return { brand: 'Apple', model, os: random.weighted(iosSystems), apiLevel: null }
  }
  const [brand, model] = random.weighted(androidModels)
  const [os, apiLevel] = random.weighted(androidSystems)
  return { brand, model, os, apiLevel }
}

export function drawTablet(random: Random): Hardware {
  const [brand, model] = random.pick(tablets)
  return { brand, model, os: '13', apiLevel: 33 }
}

/** The source of telemetry: an SDK, or the tenant's own server. */
export type Sdk = {
  name: 'android' | 'ios' | 'flutter' | 'react-native' | 'server'
  version: string
  /** From 0 (oldest) to 1 (newest): newer SDKs measure more. */
  age: number
}

type Adoption = readonly (readonly [string, number])[]

const adoption: Record<Sdk['name'], Adoption> = {
  android: [
    ['3.1.0', 18],
    ['3.0.2', 34],
    ['3.0.0', 9],
    ['2.9.4', 21],
    ['2.8.1', 11],
    ['2.4.0', 5],
    ['1.12.3', 2],
  ],
  ios: [
    ['3.1.0', 30],
    ['3.0.1', 38],
    ['2.9.2', 20],
    ['2.7.0', 9],
    ['2.1.5', 3],
  ],
  flutter: [
    ['3.0.4', 36],
    ['3.0.1', 24],
    ['2.8.0', 22],
    ['2.6.3', 13],
    ['2.0.0-beta.4', 5],
  ],
  'react-native': [
    ['1.6.2', 55],
    ['1.5.0', 33],
    ['1.2.7', 12],
  ],
  server: [['server-java/1.3.0', 1]],
}

/** Draws an SDK for a platform: mostly native ones and Flutter, few servers. */
export function drawSdk(platform: Platform, random: Random): Sdk {
  const name = random.weighted<Sdk['name']>([
    [platform, 52],
    ['flutter', 32],
    ['react-native', 13],
    ['server', 3],
  ])
  const versions = adoption[name]
  const version = random.weighted(versions)
  const place = versions.findIndex(([one]) => one === version)
  return { name, version, age: 1 - place / versions.length }
}

/** The stores that phones are sold with; all of them are trusted. */
export function drawInstaller(brand: string, random: Random): string {
  const own: Record<string, string> = {
    samsung: 'com.sec.android.app.samsungapps',
    HUAWEI: 'com.huawei.appmarket',
    Xiaomi: 'com.xiaomi.mipicks',
    OPPO: 'com.heytap.market',
    vivo: 'com.vivo.appstore',
    Amazon: 'com.amazon.venezia',
  }
  const store = own[brand]
  return store !== undefined && random.chance(brand === 'HUAWEI' ? 0.95 : 0.1)
    ? store
    : 'com.android.vending'
}
