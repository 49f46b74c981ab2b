import { type AnyRoute, json } from '../../http/index.ts';
import { MoveInput, MoveStepInput } from '../../protocol/index.ts';
import { type Moves, stepHere } from '../moves/index.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { Bind } from './bind.ts';

export interface MoveRoutesOptions {
  readonly moves: Moves;
  readonly registry: Registry;
}

/** Moves of conversations: led by this Hub, or one step at a workspace of this machine for the Hub that leads. */
export function moveRoutes(bind: Bind, { moves, registry }: MoveRoutesOptions): AnyRoute[] {
  return [
    bind(hubRoutes.listMoves, () => json(200, moves.list())),
    bind(hubRoutes.startMove, async (context) => json(200, await moves.start(await context.json(MoveInput)))),
    bind(hubRoutes.cancelMove, async ({ params }) => json(200, await moves.cancel(params['moveId'] ?? ''))),
    bind(hubRoutes.stepMove, async (context) => {
      const step = await context.json(MoveStepInput);
      return json(200, await stepHere(registry, step, context.signal));
    }),
  ];
}
