import type { AnyRoute } from '../../http/index.ts';
import { json } from '../../http/index.ts';
import { PushSubscribeInput, PushUnsubscribeInput } from '../../protocol/index.ts';
import type { WebPush } from '../notices/index.ts';
import { hubRoutes } from '../route-table.ts';
import type { Bind } from './bind.ts';

export interface PushRoutesOptions {
  readonly push: WebPush;
}

/** Subscriptions of browsers to notices. Only the page uses them. */
export function pushRoutes(bind: Bind, { push }: PushRoutesOptions): AnyRoute[] {
  return [
    bind(hubRoutes.getPush, () => json(200, push.info(), [['cache-control', 'no-store']])),
    bind(hubRoutes.subscribePush, async (context) =>
      json(200, { id: await push.subscribe(await context.json(PushSubscribeInput)) }),
    ),
    bind(hubRoutes.unsubscribePush, async (context) =>
      json(200, { removed: await push.unsubscribe((await context.json(PushUnsubscribeInput)).endpoint) }),
    ),
  ];
}
