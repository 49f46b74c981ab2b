import type * as core from '@ag-ui/core';
import { sseFrame } from '../lib/index.ts';

type Plain<E> = E extends { readonly type: infer T extends string }
  ? { readonly [K in keyof E as K extends 'type' ? never : K]: E[K] } & { readonly type: `${T}` }
  : never;

/** One event of AG-UI 1.0 on the wire. The types are the protocol's own; nothing of that package is loaded. */
export type AguiEvent = Plain<core.Event>;
export type AguiMessage = core.Message;
export type AguiUsage = core.TokenUsage;
export type AguiInterrupt = core.Interrupt;
export type AguiOutcome = core.RunFinishedOutcome;

/** Version of the protocol that these events follow. */
export const aguiVersion = '1.0';

/** Encodes an event for the stream. The clients of the protocol read `data` only. */
export function frameOf(event: AguiEvent): Uint8Array {
  return Buffer.from(sseFrame({ data: JSON.stringify(event) }));
}
