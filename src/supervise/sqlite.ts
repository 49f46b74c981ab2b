let sqlite: typeof import('node:sqlite') | undefined;

/**
 * Loads `node:sqlite` on first use: importing a room costs nothing. It announces itself as
 * experimental while it loads: that one warning is left out.
 */
export function loadSqlite(): typeof import('node:sqlite') {
  if (sqlite) return sqlite;
  const emitWarning = process.emitWarning;
  process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] === 'ExperimentalWarning' && String(warning).startsWith('SQLite')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  }) as typeof process.emitWarning;
  try {
    sqlite = process.getBuiltinModule('node:sqlite');
    if (!sqlite) throw new Error(`Node ${process.version} has no node:sqlite, which Node 22.13 and later have`);
  } finally {
    process.emitWarning = emitWarning;
  }
  return sqlite;
}
