import { type RawBuilder, sql } from 'kysely';
import type { Database } from './database.ts';
import { pageSize } from './paging.ts';
import { prepared } from './prepared.ts';
import { eventRow } from './tables.ts';
import type { ReviewStore } from './types.ts';
import type { Wakes } from './wakes.ts';

type Methods = Pick<ReviewStore, 'publish' | 'events' | 'newestEvent' | 'oldestEvent'>;

/**
 * Stores the event stream. A writer holds its lock until the commit is visible, so events become visible in the order of their numbers:
 * a reader that has seen one number cannot miss a smaller one.
 */
export function events(database: Database, wakes: Wakes): Methods {
  const end = (which: RawBuilder<number>) =>
    database.read(async (rows) => {
      const found = await rows.selectFrom('events').select(which.as('seq')).executeTakeFirst();
      return Number(found?.seq ?? 0);
    });
  return {
    publish: async (kind, data) => {
      await database.write(async (rows) => {
        await database.lock(rows, 'events');
        await insert(database, rows, { kind, data: JSON.stringify(data) });
      });
      wakes.notify('events');
    },

    events: (after, limit) =>
      database.read(async (rows) => {
        const { rows: found } = await newer(database, rows, { after, limit: pageSize(limit) });
        return found.map(eventRow.decode);
      }),

    newestEvent: () => end(sql<number>`max("seq")`),

    oldestEvent: () => end(sql<number>`min("seq")`),
  };
}

const newer = prepared((_, rows, { after, limit }: { readonly after: number; readonly limit: number }) =>
  rows.selectFrom('events').selectAll().where('seq', '>', after).orderBy('seq').limit(limit),
);

const insert = prepared(({ now }, rows, { kind, data }: { readonly kind: string; readonly data: string }) =>
  rows.insertInto('events').values({ kind, data, at: now }),
);
