// The search of the site runs in a Worker, which browsers do not start for pages that are opened as files.
// There its script runs in a hidden frame instead, with the same messages. The name of this file tells the
// offline plugin that it need not fetch such a script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.loaded = new Promise((resolve) => this.frame.addEventListener("load", resolve, { once: true }));
      window.addEventListener("message", ({ source, data }) => {
        if (source === this.frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data }));
      });
      // A worker's own postMessage reaches the page; a window's would reach the window itself.
      const setUp = 'window.postMessage = (data) => parent.postMessage(data, "*");';
      this.frame.srcdoc = `<script>${setUp}</script><script src="${url}"></script>`;
      document.body.append(this.frame);
    }

    async postMessage(data) {
      await this.loaded;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
