'use strict';
exports.Scans = class Scans {
    description = {
        displayName: 'Scans', name: 'scans', version: 1, inputs: ['main'], outputs: ['main'],
        properties: [
            { name: 'operation', type: 'options', default: 'upload', options: [{ name: 'Upload', value: 'upload' }, { name: 'Download', value: 'download' }] },
            { name: 'file', type: 'string', required: true, default: 'data', displayOptions: { show: { operation: ['upload'] } } },
            { name: 'language', type: 'string', default: 'en', displayOptions: { show: { operation: ['upload'] } } },
            { name: 'scanId', type: 'string', required: true, default: '', displayOptions: { show: { operation: ['download'] } } },
        ],
    };
    async execute() {
        if (this.getNodeParameter('operation', 0) === 'upload') {
            const value = await this.helpers.getBinaryDataBuffer(0, this.getNodeParameter('file', 0));
            const formData = { language: this.getNodeParameter('language', 0), scan: { value, options: { filename: 'scan.pdf' } } };
            return [this.helpers.returnJsonArray(await this.helpers.request({ method: 'POST', uri: 'https://scans.example/v1/scans', formData, json: true }))];
        }
        const url = `https://scans.example/v1/scans/${this.getNodeParameter('scanId', 0)}/pdf`;
        const content = await this.helpers.httpRequest({ method: 'GET', url, encoding: 'arraybuffer' });
        return [[{ json: {}, binary: { data: await this.helpers.prepareBinaryData(Buffer.from(content), 'scan.pdf') } }]];
    }
};
