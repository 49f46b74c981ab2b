/** Fields of one server-sent event. A reader takes `event` as `message` when it is missing. */
export interface SseFields {
  readonly id?: string;
  readonly event?: string;
  /** One line: JSON has no line breaks. */
  readonly data: string;
}

/**
 * Writes one server-sent event (WHATWG HTML, section 9.2.5): a line per field, in the order of the keys of `fields`, and an
 * empty line.
 *
 * @throws TypeError when a field holds a line break, which would end it and let its rest pass for another field
 * @example sseFrame({ id: '7', event: 'ready', data: '{}' }) // 'id: 7\nevent: ready\ndata: {}\n\n'
 */
export function sseFrame(fields: SseFields): string {
  let frame = '';
  // No `Object.entries`: it doubled the time per event.
  for (const name in fields) {
    const value = fields[name as keyof SseFields] ?? '';
    if (hasLineBreak(value)) throw new TypeError(`line break in the ${name} of an event`);
    frame += `${name}: ${value}\n`;
  }
  return `${frame}\n`;
}

const hasLineBreak = (text: string): boolean => text.includes('\n') || text.includes('\r');
