/** `src/agent/store/schema.generated.json`: the joint result of the migrations of a workspace's database. */
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { migrations } from '../src/agent/store/migrations.ts';

/** Objects of a database with all migrations, in the order in which they can be made, and statements that insert its rows. */
export function storeSchema(): string {
  const database = new DatabaseSync(':memory:');
  try {
    database.exec(migrations.join('\n;\n'));
    const objects = database.prepare("SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema").all();
    const schema = { objects: objects.map((each) => Object.values(each)), inserts: insertsOf(database) };
    return `${JSON.stringify(schema, null, 2)}\n`;
  } finally {
    database.close();
  }
}

function insertsOf(database: DatabaseSync): readonly string[] {
  const tables = database
    .prepare("SELECT name FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all();
  return tables.flatMap(({ name }) =>
    database
      .prepare(`SELECT * FROM "${name}"`)
      .all()
      .map((row) => `INSERT INTO "${name}" VALUES (${Object.values(row).map(literal).join(', ')})`),
  );
}

function literal(value: SQLOutputValue): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  throw new TypeError('a migration inserts bytes, which this script cannot write');
}
