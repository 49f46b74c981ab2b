import type { HttpRequest } from 'uWebSockets.js';
import { type FramingFields, framingFault, headerBytes, sizeFault } from './framing.ts';
import type { HttpError } from './http-error.ts';

/** The two headers that every route reads. */
export interface Head {
  host: string;
  authorization: string;
}

/** Request line without method and target, and the end of each header line. */
const lineBytes = 12;
const headerLineBytes = 4;

let head: Head = { host: '', authorization: '' };
let all: Map<string, string> = new Map();
let bytes = 0;
let hosts = 0;
let lengths = 0;
let length = '';
let isCoded = false;

function begin(targetBytes: number): void {
  bytes = lineBytes + targetBytes;
  hosts = 0;
  lengths = 0;
  isCoded = false;
}

// One function for all requests, without a closure: it runs for every header of every request.
function visit(name: string, value: string): void {
  bytes += name.length + value.length + headerLineBytes;
  switch (name.length) {
    case 4:
      if (name !== 'host') return;
      hosts += 1;
      if (hosts === 1) head.host = value;
      return;
    case 13:
      if (name === 'authorization' && head.authorization === '') head.authorization = value;
      return;
    case 14:
      if (name !== 'content-length') return;
      lengths += 1;
      length = value;
      return;
    case 17:
      if (name === 'transfer-encoding') isCoded = true;
      return;
    default:
  }
}

function visitAll(name: string, value: string): void {
  visit(name, value);
  if (value === '') return;
  const before = all.get(name);
  all.set(name, before === undefined ? value : `${before}, ${value}`);
}

/** Nearly every request has one Content-Length at most; others are looked through a second time. */
function faultOf(req: HttpRequest): HttpError | undefined {
  const isPlain = hosts <= 1 && lengths <= 1 && !isCoded;
  const lengthsOfPlain = lengths === 0 ? [] : [length];
  const framing = framingFault(isPlain ? { hosts, lengths: lengthsOfPlain, codings: [] } : framingOf(req));
  return framing ?? (bytes > headerBytes ? sizeFault(bytes) : undefined);
}

/**
 * Reads the headers once, for every request: `into` gets the two that all routes read.
 *
 * uWebSockets.js uses the first Content-Length and takes any Transfer-Encoding for "chunked", so both are judged here, before
 * a handler runs.
 *
 * @returns why the request is refused
 */
export function readHead(req: HttpRequest, targetBytes: number, into: Head): HttpError | undefined {
  head = into;
  begin(targetBytes);
  req.forEach(visit);
  return hosts <= 1 && lengths === 0 && !isCoded && bytes <= headerBytes ? undefined : faultOf(req);
}

/** Like `readHead`, and copies all headers into `headers`, joined by name: a request with a body needs them after its turn. */
export function readHeaders(
  req: HttpRequest,
  targetBytes: number,
  into: Head,
  headers: Map<string, string>,
): HttpError | undefined {
  head = into;
  all = headers;
  begin(targetBytes);
  req.forEach(visitAll);
  return faultOf(req);
}

function framingOf(req: HttpRequest): FramingFields {
  const lengths: string[] = [];
  const codings: string[] = [];
  req.forEach((name, value) => {
    if (name === 'content-length') lengths.push(value);
    else if (name === 'transfer-encoding') codings.push(value);
  });
  return { hosts, lengths, codings };
}
