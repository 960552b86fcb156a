// Keeps one stream of events for all tabs. A tab says which page it shows and which versions of its sections it has; the
// server sends the sections that differ. In a browser without shared workers a page has a stream of its own.

// A stream that has ended is asked for again after a pause, in milliseconds, which doubles while that fails.
const first = 2000, longest = 30000;

export class Stream {
  constructor(tell) {
    this.tell = tell;
    this.pause = first;
    this.pages = new Map();
  }

  // set follows these pages, each with the versions that are shown, in place of those before.
  set(pages) {
    this.pages = pages;
    this.source?.close();
    clearTimeout(this.again);
    if (!pages.size) return;
    const query = new URLSearchParams();
    for (const [page, have] of pages) {
      query.append("page", page);
      query.append("have", have);
    }
    this.source = new EventSource(`/events?${query}`);
    this.source.addEventListener("page", (e) => this.take(JSON.parse(e.data)));
    this.source.onerror = () => {
      for (const page of this.pages.keys()) this.tell({ page, on: false });
      this.source.close(); // it would ask for the versions of the beginning
      this.again = setTimeout(() => this.set(this.pages), this.pause);
      this.pause = Math.min(this.pause * 2, longest);
    };
  }

  take(frame) {
    this.pause = first;
    if (frame.sections) this.pages.set(frame.page, frame.versions);
    this.tell(frame);
  }
}

const ports = new Map(); // what each tab shows
let stream;

function follow() {
  const pages = new Map();
  for (const shown of ports.values()) if (shown) pages.set(shown.page, shown.have);
  stream.set(pages);
}

if (typeof SharedWorkerGlobalScope !== "undefined" && self instanceof SharedWorkerGlobalScope) {
  stream = new Stream((message) => {
    for (const [port, shown] of ports) {
      if (shown?.page !== message.page) continue;
      if (message.sections) shown.have = message.versions;
      port.postMessage(message);
    }
  });
  self.onconnect = (e) => {
    const port = e.ports[0];
    port.onmessage = ({ data }) => {
      if (data.bye) ports.delete(port);
      else ports.set(port, data);
      follow();
    };
  };
}
