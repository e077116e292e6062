/**
 * Stores that sell apps as the platform's own store does, by the package that installs: what
 * `tamper.installer_package` says. Patterns of events keep these texts, so every change needs
 * another version of patterns.
 */
export const otherAppStores = [
  'com.sec.android.app.samsungapps',
  'com.huawei.appmarket',
  'com.amazon.venezia',
  'com.xiaomi.mipicks',
  'com.xiaomi.market',
  'com.heytap.market',
  'com.oppo.market',
  'com.vivo.appstore',
  'dev.firebase.appdistribution',
]
