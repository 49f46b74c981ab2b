import { effect, type Signal, signal } from '@preact/signals';
import { drawChart, layOut, type MachineGraph, wholeOf } from '../../inspect/browser.ts';
import { messageOf } from '../../lib/browser.ts';
import type { Chart } from '../../protocol/index.ts';
import type { CreateSource } from '../views/actors/source.ts';
import type { Transport } from './transport.ts';
import { wholeFactOf } from './whole-fact.tsx';

/** Number of states up to which several layouts are compared. */
const mostCompared = 60;

/** Machines of a program. Each arrives before its first actor, and this page computes its layout. */
export class ProgramMachines {
  readonly #charts = signal<ReadonlyMap<string, Chart>>(new Map());
  readonly #waiting = signal<ReadonlyMap<string, MachineGraph>>(new Map());
  #isBusy = false;

  add(json: string): void {
    const graph: MachineGraph = JSON.parse(json);
    this.#waiting.value = new Map(this.#waiting.peek()).set(graph.name, graph);
  }

  /** @param transport transport to the program, for complete facts */
  source(transport: Transport): CreateSource {
    const WholeFact = wholeFactOf(transport);
    return (_, __, notice) => ({
      charts: this.#charts,
      isPending: (machine) => this.#waiting.value.has(machine),
      drawingsOf: async () => null,
      copyOf: (chart) => ({
        facts: [],
        load: async () => (await import('./machine-copy.ts')).machineOfChart(chart),
      }),
      WholeFact,
      stop: effect(() => {
        if (this.#waiting.value.size > 0) void this.#drawAll(notice);
      }),
    });
  }

  /** Draws the machines one after the other, so that the page responds in between. */
  async #drawAll(notice: Signal<string | null>): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (;;) {
      const [graph] = this.#waiting.peek().values();
      if (!graph) break;
      try {
        const layout = await (graph.nodes.length > mostCompared ? layOut(graph, ['DOWN']) : wholeOf(graph));
        this.#charts.value = new Map(this.#charts.peek()).set(graph.name, drawChart(graph, layout));
      } catch (error) {
        notice.value = `The chart of ${graph.name} could not be drawn: ${messageOf(error)}`;
      }
      const rest = new Map(this.#waiting.peek());
      // A later version of the machine may have arrived in the meantime.
      if (rest.get(graph.name) === graph) rest.delete(graph.name);
      this.#waiting.value = rest;
    }
    this.#isBusy = false;
  }
}
